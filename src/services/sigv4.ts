/**
 * AWS Signature Version 4 for a POST with a body and without a query. Compared with two other signers in
 * `sigv4.test.ts`.
 */
import { createHash, createHmac } from 'node:crypto'

export type SigningKey = {
  readonly keyId: string
  readonly secret: string
  readonly region: string
  readonly service: string
}

type Signed = { readonly host: string; readonly path: string; readonly body: Buffer; readonly nowMs: number }

const hash = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** The headers that prove a request: `authorization` and `x-amz-date`. Every header given is signed. */
export function signRequest(
  { keyId, secret, region, service }: SigningKey,
  { host, path, body, nowMs }: Signed,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const time = new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, '')
  const day = time.slice(0, 8)
  const all = Object.entries({ ...headers, host, 'x-amz-date': time }).sort(([a], [b]) => (a < b ? -1 : 1))
  const names = all.map(([name]) => name).join(';')
  const lines = all.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}\n`).join('')
  const request = ['POST', encodePath(path), '', lines, names, hash(body)].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const text = ['AWS4-HMAC-SHA256', time, scope, hash(request)].join('\n')
  const key = [day, region, service, 'aws4_request'].reduce<Buffer | string>(hmac, `AWS4${secret}`)
  const signature = hmac(key, text).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${keyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  return { authorization, 'x-amz-date': time }
}

/** Each part of the path once more percent-encoded (RFC 3986), as every service but S3 wants it. */
const encodePath = (path: string): string =>
  path
    .split('/')
    .map((part) =>
      encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`),
    )
    .join('/')
