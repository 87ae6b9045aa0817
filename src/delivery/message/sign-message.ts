/**
 * Signs a message (DKIM, RFC 6376 and RFC 8463): `c=relaxed/simple`, one signature for each key. The body
 * needs no canonical form: the composer ends it with one line break, and relays keep its lines.
 */
import { hash, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { SigningKey } from '../../domain/delivery/signing-key.ts'

/** A key that signs mail, opened. */
export type Signer = Pick<SigningKey, 'domain' | 'selector' | 'algorithm'> & { readonly key: KeyObject }

export type SignOptions = {
  /** Seconds since 1970. */
  readonly signedAt: number
  /** When the signatures expire (`x=`), in seconds since 1970. This limits replay. */
  readonly expiresAt: number
  /** Whether a relay puts a Date and a Message-ID of its own, which a signature must then not cover. */
  readonly relayDates: boolean
}

const signed = [
  ...['from', 'to', 'reply-to', 'subject', 'date', 'message-id', 'mime-version', 'content-type'],
  ...['expires', 'auto-submitted', 'feedback-id', 'x-entity-ref-id'],
]
/** Named once more than they occur, so that nobody can add another one. */
const oversigned = [
  ...['from', 'to', 'cc', 'subject', 'date', 'reply-to', 'message-id', 'content-type', 'mime-version'],
  ...['content-transfer-encoding', 'sender', 'list-unsubscribe', 'expires'],
]
/** Set or added by relays that write their own Date. */
const byRelay = ['date', 'message-id', 'sender', 'list-unsubscribe']
/** A space after so many names, where the line may break. */
const namesInLine = 5

const signInPool = promisify(sign)

/** The message with its signatures in front. Signing happens in the thread pool. */
export async function signMessage(
  bytes: Buffer,
  signers: readonly Signer[],
  { expiresAt, relayDates, signedAt }: SignOptions,
): Promise<Buffer> {
  const end = bytes.indexOf('\r\n\r\n') + 2
  const covers = (name: string) => !(relayDates && byRelay.includes(name))
  const fields = readFields(bytes.toString('latin1', 0, end))
  const present = signed.filter((name) => covers(name) && fields.has(name))
  const names = [...present, ...oversigned.filter(covers)]
    .map((name, n) => (n > 0 && n % namesInLine === 0 ? ` ${name}` : name))
    .join(':')
  const head = present.map((name) => `${name}:${fields.get(name)}\r\n`).join('')
  const bodyHash = hash('sha256', bytes.subarray(end + 2), 'base64')
  const signatures = await Promise.all(
    signers.map(async ({ algorithm, domain, key, selector }) => {
      const tags = `v=1; a=${algorithm}-sha256; c=relaxed/simple; d=${domain}; s=${selector}; t=${signedAt}; x=${expiresAt};`
      const text = `${tags} h=${names}; bh=${bodyHash}; b=`
      const signature = await signData(Buffer.from(`${head}dkim-signature:${text}`, 'latin1'), algorithm, key)
      return foldSignature(text, signature.toString('base64'))
    }),
  )
  return Buffer.concat([Buffer.from(signatures.join('')), bytes])
}

/** Ed25519 signs the hash of the data, RSA the data. */
const signData = (data: Buffer, algorithm: SigningKey['algorithm'], key: KeyObject): Promise<Buffer> =>
  algorithm === 'rsa' ? signInPool('sha256', data, key) : signInPool(null, hash('sha256', data, 'buffer'), key)

/** The values of the header's fields in the relaxed form, by their names in small letters. */
function readFields(head: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const line of head.replaceAll(/\r\n(?=[ \t])/g, '').split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon).toLowerCase(), relax(line.slice(colon + 1)))
  }
  return fields
}

const relax = (value: string): string => {
  const trimmed = value.trim()
  return /[ \t]{2}|\t/.test(trimmed) ? trimmed.split(/[ \t]+/).join(' ') : trimmed
}

const lineMax = 74

/** Lines break where the text has a space, and inside the signature, where spaces do not count. */
function foldSignature(text: string, signature: string): string {
  const lines: string[] = []
  let line = 'DKIM-Signature:'
  for (const word of text.split(' ')) {
    if (line.length + word.length < lineMax) {
      line += ` ${word}`
      continue
    }
    lines.push(line)
    line = ` ${word}`
  }
  const room = lineMax - line.length
  lines.push(line + signature.slice(0, room))
  for (let at = room; at < signature.length; at += lineMax) lines.push(` ${signature.slice(at, at + lineMax)}`)
  return `${lines.join('\r\n')}\r\n`
}
