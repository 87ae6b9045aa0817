/** The record by which receivers verify signatures (RFC 6376, section 3.6.1; RFC 8463). */
import type { SigningAlgorithm } from '../delivery/signing-key.ts'
import { type Answer, fail, ok, unknown, type Verdict, warn, withoutMarks } from './lookup.ts'
import { readTags } from './tags.ts'

type Key = { readonly algorithm: SigningAlgorithm; readonly publicKey: string }

export const dkimName = (selector: string, domain: string): string => `${selector}._domainkey.${domain}`

/** @param publicKey base64: of the SPKI for rsa, of the 32 bytes for ed25519 */
export const formatDkimRecord = (algorithm: SigningAlgorithm, publicKey: string): string =>
  `v=DKIM1; k=${algorithm}; p=${publicKey}`

/** As a zone file has it: strings of at most 255 characters. */
export const quoteRecord = (text: string): string =>
  (text.match(/.{1,255}/g) ?? []).map((part) => `"${part}"`).join(' ')

/** The line of a record in a zone file. @param quoted by `quoteRecord` */
export const formatZoneLine = ({ name, type, quoted }: Readonly<Record<'name' | 'type' | 'quoted', string>>): string =>
  `${name}. IN ${type} ( ${quoted} )`

/** Whether receivers that ask for the record get this key. */
export function judgeDkimRecord(answer: Answer, { algorithm, publicKey }: Key): Verdict {
  if (answer.kind === 'unknown') return unknown(answer.reason)
  if (answer.kind === 'absent') return fail('The record is not in DNS: publish it.')
  const [record = '', ...more] = answer.records
  if (more.length > 0)
    return fail('There are several records with this name, so receivers may take another one: leave one.')
  const tags = readTags(record)
  const [first] = tags?.keys() ?? []
  if (tags === null || (tags.has('v') && (first !== 'v' || tags.get('v') !== 'DKIM1')))
    return fail(`The record is not a DKIM record: replace it${withoutMarks(record)}.`)
  const lists = (tag: string, ...values: readonly string[]) => {
    const list = tags
      .get(tag)
      ?.split(':')
      .map((value) => value.trim())
    return list?.some((value) => values.includes(value))
  }
  // Some forms of DNS providers break the key with spaces, which receivers ignore.
  const key = (tags.get('p') ?? '').replaceAll(/[ \t\r\n]/g, '')
  if (key === '') return fail('The record has an empty "p=", which revokes the key: replace it.')
  if ((tags.get('k') ?? 'rsa') !== algorithm || key !== publicKey)
    return fail(`${describeKey(key, publicKey)}, so receivers refuse the signature: replace it${withoutMarks(record)}.`)
  if (lists('h', 'sha256') === false || lists('s', '*', 'email') === false)
    return fail('The record is not for the signatures of email ("h=" or "s="): replace it.')
  if (lists('t', 'y') === true)
    return warn('The record has "t=y": receivers treat the mail as unsigned. Remove it once mail arrives.')
  return ok('The record is in DNS.')
}

function describeKey(key: string, publicKey: string): string {
  if (key !== publicKey && publicKey.startsWith(key))
    return `The record has only ${key.length} of the ${publicKey.length} characters of the key`
  if (key.toLowerCase() === publicKey.toLowerCase() && key !== publicKey)
    return 'The key in the record differs in upper and lower case'
  return key !== publicKey && cleanKey(key) === publicKey
    ? 'The key in the record has characters that are no part of it'
    : 'The record has another key'
}

/** Without quotes, backslashes, invisible characters, and the lines around a key in a PEM file. */
const cleanKey = (key: string): string => key.replaceAll(/-----\w*-----/g, '').replaceAll(/[^A-Za-z0-9+/=]/g, '')
