/**
 * Resend (resend.com/docs), which composes messages itself. A request that is repeated with the key of an
 * email that was sent within 24 hours sends no second one.
 */

import { verifyStandardWebhook } from '../domain/signatures.ts'
import { type JsonFields, toFields, toText } from '../services/json-fields.ts'
import { type Proof, secretMin } from './event-proof.ts'
import { type ApiMessage, formatMailbox, json, type MailApi, readText, toJson } from './mail-api.ts'
import type { ApiService, MailService } from './service.ts'
import { bounced, describeEvent, type EventMeaning, type Meanings, suppressed, unlessKnown } from './service-event.ts'

type Account = { readonly key: string }

const api: ApiService<Account> = {
  example: 'resend://KEY@api.resend.com',
  options: [],
  traits: { rewrites: 'all', envelope: 'relay', include: null },
  bounds: { connectionsMax: null, rate: 2 },
  endpoint: 'https://api.resend.com',
  readAccount: (url) => ({ key: url.key() }),
  open: newApi,
}

const path = '/emails'

function newApi({ key }: Account): MailApi {
  const headers = { ...json, authorization: `Bearer ${key}`, 'user-agent': 'postern' }
  return {
    isIdempotent: true,
    secrets: [key],
    newRequest: (message) => ({
      path,
      headers: { ...headers, 'idempotency-key': message.id },
      body: toJson(toBody(message)),
    }),
    newProbe: () => ({ path, headers, body: toJson({}) }),
    // The key was used with another body, which named another remaining time: that email was sent.
    readAcceptance: ({ status, json: body }) =>
      status === 200
        ? readText(body, 'id') || null
        : status === 409 && readText(body, 'name') === 'invalid_idempotent_request'
          ? 'of an earlier attempt'
          : null,
    readError: ({ json: body }) => ({ code: readText(body, 'name'), text: readText(body, 'message') }),
    kinds: {
      concurrent_idempotent_requests: 'deferred',
      daily_quota_exceeded: 'account',
      monthly_quota_exceeded: 'account',
      missing_api_key: 'account',
      restricted_api_key: 'account',
      invalid_api_key: 'account',
      validation_error: 'refused', // with 403: the sender's domain is not verified
    },
  }
}

function toBody({ to, describe }: ApiMessage) {
  const { from, headers, html, replyTo, subject, text } = describe()
  return {
    from: formatMailbox(from),
    to: [to],
    ...(replyTo !== null && { reply_to: replyTo }),
    subject,
    html,
    text,
    headers: Object.fromEntries(headers),
  }
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

/** Standard Webhooks, with other names of the headers. Each repeat is signed anew. */
const proof: Proof<Buffer> = {
  name: 'resend',
  form: 'resend:whsec_…, the signing secret that Resend shows',
  readKey(value) {
    const [, encoded = ''] = /^whsec_(.+)$/.exec(value) ?? []
    const secret = Buffer.from(encoded, 'base64')
    return base64.test(encoded) && secret.length >= secretMin ? secret : null
  },
  proves: (call, secret) => verifyStandardWebhook(call, secret, 'svix'),
}

const meanings: Meanings = {
  'email.delivered': 'confirmed',
  'email.complained': 'complained',
  'email.delivery_delayed': 'delayed',
  'email.suppressed': bounced(true, suppressed),
  'email.failed': bounced(true),
}

/** By the kind of a bounce, as Amazon SES names it. */
const causes: Readonly<Record<string, EventMeaning['correct']>> = {
  MailboxFull: unlessKnown('mailbox_full'),
  ContentRejected: unlessKnown('policy'),
  Suppressed: unlessKnown('relay_suppressed'),
  OnAccountSuppressionList: unlessKnown('relay_suppressed'),
}

/** One event a call, about the one recipient. The reference is in the headers that it repeats. */
function readEvent({ type, data }: JsonFields) {
  const { to, bounce, failed, suppressed: listed } = toFields(data)
  const [recipient] = Array.isArray(to) ? to : []
  if (type !== 'email.bounced') {
    const text = toFields(listed).message ?? toFields(failed).reason
    return describeEvent(meanings, type, { recipient, text })
  }
  // It gives sentences of its own, without the reply of the server.
  const { message: text, subType, type: permanence } = toFields(bounce)
  const name = toText(subType)
  const correct = Object.hasOwn(causes, name) ? causes[name] : undefined
  return { ...bounced(permanence === 'Permanent', correct), recipient, text }
}

export const resend: MailService = {
  name: 'resend',
  title: 'Resend',
  api,
  events: { proof, read: readEvent },
  advice: [[/invalid_api_key|missing_api_key|restricted_api_key/, 'the API key is wrong, or is not allowed to send']],
}
