/** The secrets by which the webhooks of mail providers prove themselves, as an operator writes them. */
import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { type FeedbackProvider, feedbackProviders } from '../delivery/feedback.ts'

export type FeedbackKey =
  /** SHA-256 of `user:password`: of one length, so that they can be compared. */
  | { readonly kind: 'basic'; readonly hash: Buffer }
  | { readonly kind: 'resend'; readonly secret: Buffer }
  | { readonly kind: 'sendgrid'; readonly publicKey: KeyObject }
  | { readonly kind: 'mailgun'; readonly secret: string }

/**
 * The key without which a call of each proves nothing. The signature of Mailgun does not cover the event, so
 * it is checked besides.
 */
const needed: Readonly<Record<FeedbackProvider, FeedbackKey['kind']>> = {
  postmark: 'basic',
  resend: 'resend',
  sendgrid: 'sendgrid',
  mailgun: 'basic',
  brevo: 'basic',
  generic: 'basic',
}

/** The providers whose calls these keys can prove. */
export const listProven = (keys: readonly FeedbackKey[]): FeedbackProvider[] =>
  feedbackProviders.filter((provider) => keys.some(({ kind }) => kind === needed[provider]))

/** Nothing limits how often somebody may guess. */
const secretMin = 16

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

type Reader = { readonly form: string; readonly read: (value: string) => FeedbackKey | null }

/** By the name in front of the first colon. */
const readers: Readonly<Record<FeedbackKey['kind'], Reader>> = {
  basic: {
    form: `basic:USER:PASSWORD, with a password of at least ${secretMin} characters`,
    read: (value) => {
      const colon = value.indexOf(':')
      const isLong = value.length - colon > secretMin
      return colon > 0 && isLong ? { kind: 'basic', hash: hashCredentials(value) } : null
    },
  },
  resend: {
    form: 'resend:whsec_…, the signing secret that Resend shows',
    read: (value) => {
      const [, encoded = ''] = /^whsec_(.+)$/.exec(value) ?? []
      const secret = Buffer.from(encoded, 'base64')
      return base64.test(encoded) && secret.length >= secretMin ? { kind: 'resend', secret } : null
    },
  },
  sendgrid: {
    form: 'sendgrid:KEY, the verification key that SendGrid shows',
    read: (value) => {
      const publicKey = base64.test(value) ? readPublicKey(value) : null
      return publicKey === null ? null : { kind: 'sendgrid', publicKey }
    },
  },
  mailgun: {
    form: 'mailgun:KEY, the webhook signing key that Mailgun shows',
    read: (value) => (value.length >= secretMin ? { kind: 'mailgun', secret: value } : null),
  },
}

const isKind = (name: string): name is FeedbackKey['kind'] => Object.hasOwn(readers, name)

export const hashCredentials = (credentials: string): Buffer =>
  createHash('sha256').update(credentials).digest()

/** Null for anything else than a public key of the curve P-256. */
function readPublicKey(der: string): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : null
  } catch {
    return null
  }
}

/** Keys that are separated by spaces or line breaks. No fault repeats one. */
export function parseFeedbackKeys(text: string): {
  readonly keys: readonly FeedbackKey[]
  readonly faults: readonly string[]
} {
  const keys: FeedbackKey[] = []
  const faults: string[] = []
  for (const [index, entry] of text.trim().split(/\s+/).entries()) {
    const [name = ''] = entry.split(':', 1)
    const key = isKind(name) ? readers[name].read(entry.slice(name.length + 1)) : null
    const form = isKind(name)
      ? readers[name].form
      : `of the form NAME:…, with a name of ${Object.keys(readers).join(', ')}`
    if (key === null) faults.push(`key ${index + 1} must be ${form}`)
    else keys.push(key)
  }
  if (keys.some(({ kind }) => kind === 'mailgun') && !keys.some(({ kind }) => kind === 'basic'))
    faults.push('mailgun: needs basic: too, since the signature of Mailgun does not cover the event')
  return { keys, faults }
}
