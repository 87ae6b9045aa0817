/** SendGrid (twilio.com/docs/sendgrid). */
import { createPublicKey, createVerify, type KeyObject } from 'node:crypto'
import type { JsonFields } from '../services/json-fields.ts'
import { headerCharactersMax, type Proof } from './event-proof.ts'
import type { MailService } from './service.ts'
import { blocked, bounced, describeEvent, type Meanings, suppressed } from './service-event.ts'

const base64 = /^[A-Za-z0-9+/]+={0,2}$/
const unixSeconds = /^\d{1,12}$/

/** Null for anything else than a public key of the curve P-256. */
function readPublicKey(der: string): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : null
  } catch {
    return null
  }
}

/** ECDSA over the time and the raw body. */
const proof: Proof<KeyObject> = {
  name: 'sendgrid',
  form: 'sendgrid:KEY, the verification key that SendGrid shows',
  readKey: (value) => (base64.test(value) ? readPublicKey(value) : null),
  proves({ headers, body }, publicKey) {
    const timestamp = headers['x-twilio-email-event-webhook-timestamp'] ?? ''
    const signature = headers['x-twilio-email-event-webhook-signature'] ?? ''
    if (!unixSeconds.test(timestamp) || signature.length > headerCharactersMax) return false
    return createVerify('sha256').update(timestamp).update(body).verify(publicKey, signature, 'base64')
  },
}

const meanings: Meanings = {
  delivered: 'confirmed',
  spamreport: 'complained',
  deferred: 'delayed',
  dropped: bounced(true, suppressed),
}

/** By the `type` of a bounce; any other is temporary. */
const bounces: Meanings = { bounce: bounced(true), blocked: bounced(false, blocked) }

/** Many events a call, of at most 768 KB. `unique_args` makes a field, which holds the reference. */
function readEvent({ event, type, email: recipient, reason: text, response, status }: JsonFields) {
  if (event === 'bounce') {
    const details = { recipient, text, status }
    return describeEvent(bounces, type, details) ?? { ...bounced(false), ...details }
  }
  const isDeferred = event === 'deferred'
  return describeEvent(meanings, event, {
    recipient,
    text: isDeferred ? (response ?? text) : text,
    ...(isDeferred && { status }),
  })
}

export const sendgrid: MailService = {
  name: 'sendgrid',
  title: 'SendGrid',
  smtp: {
    hosts: ['smtp.sendgrid.net'],
    traits: { rewrites: 'dates', envelope: 'relay', include: null },
    referenceHeader: (reference) => `X-SMTPAPI: {"unique_args":{"postern":"${reference}"}}`,
  },
  events: { proof, read: readEvent },
}
