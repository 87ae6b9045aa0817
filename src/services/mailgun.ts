/** Mailgun (documentation.mailgun.com). It keeps the Message-ID, and so the reference in it. */
import { createHmac } from 'node:crypto'
import { includes } from '../domain/signatures.ts'
import { type JsonFields, toFields, toText } from '../services/json-fields.ts'
import { type BodyProof, basic, secretMin } from './event-proof.ts'
import type { MailService } from './service.ts'
import { bounced, describeEvent, suppressed } from './service-event.ts'

/**
 * The signature in a body covers a time and a token, and not the event. That of the main account is beside
 * that of a subaccount.
 */
const bodyProof: BodyProof<string> = {
  name: 'mailgun',
  form: 'mailgun:KEY, the webhook signing key that Mailgun shows',
  readKey: (value) => (value.length >= secretMin ? value : null),
  proves(body, secret) {
    const { signature, timestamp, token, ...others } = toFields(toFields(body).signature)
    const given = [signature, others['parent-signature']].map(toText)
    const signed = toText(timestamp) + toText(token)
    return includes(given, createHmac('sha256', secret).update(signed).digest('hex'))
  },
}

/** One event a call. It repeats a call that is answered with anything else than 200, also with 204. */
function readEvent(body: JsonFields) {
  const { event, reason, recipient, severity, ...others } = toFields(body['event-data'])
  const { code, description, message } = toFields(others['delivery-status'])
  const text = `${toText(code)} ${toText(message) || toText(description)}`.trim()
  const isListed = toText(reason).startsWith('suppress-')
  const failed =
    severity === 'temporary' ? 'delayed' : bounced(severity === 'permanent', isListed ? suppressed : undefined)
  return describeEvent({ delivered: 'confirmed', complained: 'complained', failed }, event, {
    recipient,
    text,
  })
}

export const mailgun: MailService = {
  name: 'mailgun',
  title: 'Mailgun',
  events: { proof: basic, bodyProof, read: readEvent },
}
