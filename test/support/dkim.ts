/** A verifier of DKIM signatures for tests (RFC 6376, `c=relaxed/simple`), written from the RFC. */
import { createHash, createPublicKey, verify } from 'node:crypto'

/** The tags of a record or a signature. */
export function readTags(text: string): Record<string, string> {
  const entries = text.split(';').map((part) => {
    const [name = '', ...value] = part.split('=')
    return [name.trim(), value.join('=').replace(/\s+/g, '')] as const
  })
  return Object.fromEntries(entries.filter(([name]) => name !== ''))
}

type Field = { readonly name: string; readonly raw: string }

function readFields(head: string): Field[] {
  const lines = head.split('\r\n').filter((line) => line !== '')
  const folded: string[] = []
  for (const line of lines)
    if (/^[ \t]/.test(line)) folded.push(`${folded.pop()}\r\n${line}`)
    else folded.push(line)
  return folded.map((raw) => ({ raw, name: raw.slice(0, raw.indexOf(':')).trim().toLowerCase() }))
}

const relax = (raw: string): string => {
  const colon = raw.indexOf(':')
  const value = raw
    .slice(colon + 1)
    .replaceAll('\r\n', '')
    .replace(/[ \t]+/g, ' ')
    .trim()
  return `${raw.slice(0, colon).trim().toLowerCase()}:${value}`
}

/**
 * The results of all signatures of a message, from the top: `pass`, or why not.
 * @param lookUp the text of the record with a name; undefined if there is none
 */
export function verifySignatures(message: Buffer, lookUp: (name: string) => string | undefined): string[] {
  const text = message.toString('latin1')
  const end = text.indexOf('\r\n\r\n')
  const fields = readFields(text.slice(0, end + 2))
  const body = text.slice(end + 4).replace(/(\r\n)*$/, '\r\n')
  const bodyHash = createHash('sha256').update(body, 'latin1').digest('base64')
  return fields.flatMap((field) =>
    field.name === 'dkim-signature' ? [verifyOne(field.raw, { fields, bodyHash, lookUp })] : [],
  )
}

type Parts = {
  readonly fields: readonly Field[]
  readonly bodyHash: string
  readonly lookUp: (name: string) => string | undefined
}

function verifyOne(raw: string, { fields, bodyHash, lookUp }: Parts): string {
  const tags = readTags(raw.slice(raw.indexOf(':') + 1))
  if (tags.v !== '1' || tags.c !== 'relaxed/simple') return 'another form'
  if (tags.bh !== bodyHash) return 'the body was altered'
  const record = lookUp(`${tags.s}._domainkey.${tags.d}`)
  if (record === undefined) return 'no record'
  const left = fields.toReversed() // the last field of a name is signed first
  const covered = (tags.h ?? '').split(':').flatMap((name) => {
    const index = left.findIndex((field) => field.name === name.toLowerCase())
    return index === -1 ? [] : left.splice(index, 1).map((field) => `${relax(field.raw)}\r\n`)
  })
  const own = relax(raw.replace(/(;\s*b=)[^;]*$/, '$1'))
  const data = Buffer.from(`${covered.join('')}${own}`, 'latin1')
  const { k = 'rsa', p = '' } = readTags(record)
  const key = Buffer.from(p, 'base64')
  const signature = Buffer.from(tags.b ?? '', 'base64')
  if (tags.a !== `${k}-sha256`) return 'another algorithm'
  const isRight =
    k === 'rsa'
      ? verify('sha256', data, createPublicKey({ key, format: 'der', type: 'spki' }), signature)
      : verify(null, createHash('sha256').update(data).digest(), toEd25519(key), signature)
  return isRight ? 'pass' : 'a header was altered'
}

const toEd25519 = (key: Buffer) =>
  createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') }, format: 'jwk' })
