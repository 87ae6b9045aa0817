/**
 * Judging one request against the settings of one app, purely: body, link, allow-list, in the
 * order of spec 7. Every fault of the 400 classes is listed together; the first class that has one
 * names the refusal.
 */

import { checkLinkAllowed } from '../domain/app/allowed-url.ts'
import { type App, type AppPolicy, appPolicy } from '../domain/app/app.ts'
import { chooseHostedLink } from '../domain/app/hosted-link.ts'
import { type AppId, newId } from '../domain/id.ts'
import { type AuthLink, parseAuthLink } from '../domain/request/auth-link.ts'
import { domainOf } from '../domain/request/email-address.ts'
import { type EmailRequest, parseEmailRequest, type ReceivedBody } from '../domain/request/email-request.ts'
import type { Issue, Rejection } from '../domain/request/rejection.ts'
import type { LinkTarget } from '../store/crypto/sealed-link.ts'
import type { NewEmail } from '../store/store.ts'

/** What the HTTP layer hands over of a request. */
export type IncomingRequest = {
  readonly authorization: string | undefined
  readonly idempotencyKey: string | undefined
  readonly body: ReceivedBody
}

/** An app as requests are judged by it, with its settings parsed once per version. */
export type Sender = { readonly appId: AppId; readonly version: number; readonly policy: AppPolicy }

export const toSender = (app: App): Sender => ({
  appId: app.id,
  version: app.version,
  policy: appPolicy(app),
})

/** The service's side of hosted links; no base URL means that it has none. */
export type LinkHost = {
  readonly baseUrl: string | null
  readonly seal: (appId: AppId, target: LinkTarget) => string
}

export type Judgement = { readonly admit: NewEmail } | { readonly reject: Rejection }

const idempotencyKeyShape = /^[\x21-\x7e]{1,255}$/

export type JudgeContext = { readonly sender: Sender; readonly links: LinkHost; readonly nowMs: number }

export function judgeRequest(request: IncomingRequest, bench: JudgeContext): Judgement {
  const { policy } = bench.sender
  const body = parseEmailRequest(request.body, bench.nowMs)
  const link = body.url === undefined ? null : parseAuthLink(body.url, policy.schemes)
  const bodyIssues = [
    ...checkIdempotencyKey(request.idempotencyKey),
    ...(body.request.ok ? [] : body.request.issues),
  ]
  const linkIssues = link === null || link.ok ? [] : link.issues
  if (bodyIssues.length > 0) return reject({ code: 'invalid_body', issues: [...bodyIssues, ...linkIssues] })
  if (linkIssues.length > 0) return reject({ code: 'invalid_url', issues: linkIssues })
  if (!body.request.ok || !link?.ok) throw new Error('a request without issues was not parsed')
  const { baseUrl } = bench.links
  const choice = chooseHostedLink({ link: link.value, type: body.request.value.type, policy, baseUrl })
  if (choice.kind === 'misconfigured')
    return reject({ code: 'invalid_hosted_link_config', issues: choice.issues })
  const difference = checkLinkAllowed(link.value, policy)
  if (difference !== null) {
    return reject({ code: 'url_not_allowed', message: `The link is not allowed for this app. ${difference}` })
  }
  const hosted = choice.kind === 'hosted' ? choice.destination : null
  return { admit: toNewEmail(bench, { request: body.request.value, link: link.value, hosted }) }
}

const reject = (rejection: Rejection): Judgement => ({ reject: rejection })

/** An idempotency key that cannot be one is a fault of the request, never ignored. */
export function checkIdempotencyKey(key: string | undefined): Issue[] {
  if (key === undefined || idempotencyKeyShape.test(key)) return []
  const message = 'Give one Idempotency-Key of 1 to 255 visible ASCII characters.'
  return [{ field: 'Idempotency-Key', code: 'malformed_idempotency_key', message }]
}

type Accepted = { request: EmailRequest; link: AuthLink; hosted: AuthLink | null }

function toNewEmail(bench: JudgeContext, { request, link, hosted }: Accepted): NewEmail {
  const { to, type, expiresAt } = request
  const names = type === 'organisation_invite' ? namesOf(request) : {}
  const carried =
    hosted === null ? { url: link.href } : { url: hostedUrl(bench, hosted, expiresAt), hosted: true as const }
  const messageIdDomain = domainOf(bench.sender.policy.fromAddress)
  return {
    id: newId('em', bench.nowMs),
    type,
    expiresAt,
    content: { to, ...carried, ...names, messageIdDomain },
  }
}

const namesOf = ({
  organisationName,
  inviterName,
}: Extract<EmailRequest, { type: 'organisation_invite' }>) =>
  inviterName === undefined ? { organisationName } : { organisationName, inviterName }

function hostedUrl({ sender, links }: JudgeContext, destination: AuthLink, expiresAt: number): string {
  const sealed = links.seal(sender.appId, { destination: destination.raw, expiresAt })
  return `${links.baseUrl?.replace(/\/$/, '')}/${sender.policy.slug}/${sealed}`
}
