/**
 * Judging one request against the settings of one app, purely: body, link, allow-list, in the
 * order of spec 7. Every fault of the 400 classes is listed together; the first class that has one
 * names the refusal.
 */

import { checkLinkAllowed } from '../email/allowed-url.ts'
import { type AppSettings, type SendPolicy, sendPolicy } from '../email/app.ts'
import { type AuthLink, parseAuthLink } from '../email/auth-link.ts'
import { domainOf } from '../email/email-address.ts'
import { type EmailRequest, parseEmailRequest, type ReceivedBody } from '../email/email-request.ts'
import { newId } from '../email/id.ts'
import type { Issue, Rejection } from '../email/rejection.ts'
import type { NewEmail } from '../store/store.ts'

/** What the HTTP layer hands over of a request. */
export type IncomingRequest = {
  readonly authorization: string | undefined
  readonly idempotencyKey: string | undefined
  readonly body: ReceivedBody
}

/** An app as requests are judged by it, with its settings parsed once per version. */
export type Sender = { readonly version: number; readonly settings: AppSettings; readonly policy: SendPolicy }

export const toSender = (app: { version: number; settings: AppSettings }): Sender => ({
  version: app.version,
  settings: app.settings,
  policy: sendPolicy(app.settings),
})

export type Judgement = { readonly admit: NewEmail } | { readonly reject: Rejection }

const idempotencyKeyShape = /^[\x21-\x7e]{1,255}$/

export function judgeRequest(request: IncomingRequest, sender: Sender, nowMs: number): Judgement {
  const body = parseEmailRequest(request.body, nowMs)
  const link = body.url === undefined ? null : parseAuthLink(body.url, sender.policy.schemes)
  const bodyIssues = [
    ...checkIdempotencyKey(request.idempotencyKey),
    ...(body.request.ok ? [] : body.request.issues),
  ]
  const linkIssues = link === null || link.ok ? [] : link.issues
  if (bodyIssues.length > 0) return reject({ code: 'invalid_body', issues: [...bodyIssues, ...linkIssues] })
  if (linkIssues.length > 0) return reject({ code: 'invalid_url', issues: linkIssues })
  if (!body.request.ok || !link?.ok) throw new Error('a request without issues was not parsed')
  const difference = checkLinkAllowed(link.value, sender.policy)
  if (difference !== null)
    return reject({ code: 'url_not_allowed', message: `The link is not allowed for this app. ${difference}` })
  return { admit: toNewEmail({ request: body.request.value, link: link.value, sender, nowMs }) }
}

const reject = (rejection: Rejection): Judgement => ({ reject: rejection })

/** An idempotency key that cannot be one is a fault of the request, never ignored. */
export function checkIdempotencyKey(key: string | undefined): Issue[] {
  if (key === undefined || idempotencyKeyShape.test(key)) return []
  const message = 'Give one Idempotency-Key of 1 to 255 visible ASCII characters.'
  return [{ field: 'Idempotency-Key', code: 'malformed_idempotency_key', message }]
}

type Accepted = { request: EmailRequest; link: AuthLink; sender: Sender; nowMs: number }

function toNewEmail({ request, link, sender, nowMs }: Accepted): NewEmail {
  const names =
    request.type === 'organisation_invite'
      ? {
          organisationName: request.organisationName,
          ...(request.inviterName === undefined ? {} : { inviterName: request.inviterName }),
        }
      : {}
  return {
    id: newId('em', nowMs),
    type: request.type,
    expiresAt: request.expiresAt,
    content: {
      to: request.to,
      url: link.href,
      ...names,
      messageIdDomain: domainOf(sender.policy.fromAddress),
    },
  }
}
