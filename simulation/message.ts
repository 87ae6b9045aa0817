/** Reads a message as its recipient and his server do, and compares it with the request of the app. */
import type { Asked } from './ledger.ts'

/** A message as a relay has received it. */
export type Received = {
  readonly recipient: string
  readonly tokens: readonly string[]
  readonly headers: ReadonlyMap<string, string>
}

export function readMessage(message: string, recipient: string): Received {
  const [head = ''] = message.split('\r\n\r\n', 1)
  const lines = head.replace(/\r\n[ \t]+/g, ' ').split('\r\n')
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const plain = message.replaceAll('=\r\n', '').replaceAll('=3D', '=')
  const tokens = [...plain.matchAll(/token=(\w*)/g)].map(([, token = '']) => token)
  return { recipient, tokens: [...new Set(tokens)], headers }
}

/** The first thing in which a message differs from the request; null if it is right. */
export function findDifference({ headers, recipient, tokens }: Received, asked: Asked): string | null {
  const pairs: readonly (readonly [what: string, is: unknown, shouldBe: unknown])[] = [
    ['its recipient', recipient, asked.to],
    ['To', headers.get('to'), asked.to],
    ['From', /<([^>]*)>/.exec(headers.get('from') ?? '')?.[1], 'auth@acme.test'],
    ['its link', tokens.join(), asked.token],
    ['its language', headers.get('content-language'), asked.locale ?? 'en'],
    ['its type and app', headers.get('feedback-id'), `${asked.type}:${asked.app}:auth:postern`],
    ['Expires', Date.parse(headers.get('expires') ?? ''), Math.floor(asked.expiresAt / 1000) * 1000],
  ]
  const wrong = pairs.find(([, is, shouldBe]) => is !== shouldBe)
  return wrong === undefined ? null : `${wrong[0]} is ${wrong[1]} in place of ${wrong[2]}`
}
