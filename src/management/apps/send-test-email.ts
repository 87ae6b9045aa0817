/** Queues a test email for an app. It is judged and limited like a request, but has no delivery key. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import { appPolicy } from '../../domain/app/app-policy.ts'
import { sampleLifeMs, sampleUrl } from '../../domain/app/sample-link.ts'
import { type EmailAddress, parseEmailAddress } from '../../domain/request/email-address.ts'
import type { CodePlace } from '../../domain/request/email-content.ts'
import { type EmailType, emailKinds, emailTypes } from '../../domain/request/email-kinds.ts'
import type { EmailRequest } from '../../domain/request/email-request.ts'
import { sampleCode } from '../../domain/request/one-time-code.ts'
import { type Rejection, refusals } from '../../domain/request/rejection.ts'
import { judgementsMax, toRejection } from '../../intake/accept-email.ts'
import { judgeEmail } from '../../intake/judge-request.ts'
import type { EnqueueResult } from '../../store/store.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done, fail, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { askedCode, askedLocale, choosePlace } from './asked.ts'

export const sendTestEmail = operation({
  method: 'POST',
  path: '/v1/apps/{app}/test-email',
  role: 'operator',
  summary:
    "Sends a real email whose link does not work. The app's limits apply; all its test emails share the limit of one key. One to a suppressed address is not sent, and its record says so.",
  body: closed({
    to: Type.String({ examples: ['you@example.com'] }),
    type: Type.Optional(Type.Enum([...emailTypes])),
    locale: Type.Optional(askedLocale),
    code: Type.Optional(askedCode),
  }),
  answer: closed({ email: Type.String() }),
  errors: ['test_email_refused', 'app_changing'],
  async run(context, { body: { to, type = 'magic_link', locale, code } }, app) {
    const address = parseEmailAddress(to, 'to')
    if (!address.ok) return invalid(address.issues)
    if (app.status !== 'active') return isDisabled(app)
    const request = testRequest(app, {
      ...{ to: address.value, type, nowMs: context.store.now(), locale },
      place: choosePlace(app.settings, type, code),
    })
    if (request === null)
      return fail(
        'test_email_refused',
        `The app ${app.slug} allows no links yet: "postern app update ${app.slug} --allow-url https://…" adds one.`,
      )
    return enqueue(context, app, request)
  },
})

const isDisabled = ({ slug, status }: App) =>
  fail('test_email_refused', `The app ${slug} is ${status}: enable it first.`)

type TestEmail = {
  readonly to: EmailAddress
  readonly type: EmailType
  readonly nowMs: number
  readonly locale: string | undefined
  readonly place: CodePlace
}

/** Null if the app allows no links. */
function testRequest(app: App, { to, type, nowMs, locale, place }: TestEmail): EmailRequest | null {
  const url = sampleUrl(app.settings, place === 'first' ? sampleCode : undefined)
  if (url === null) return null
  return {
    ...{ to, type, url, expiresAt: nowMs + sampleLifeMs },
    ...(locale !== undefined && { locale }),
    ...(emailKinds[type].hasNames && { organisationName: app.settings.name }),
    ...(place !== 'none' && { code: sampleCode }),
  }
}

/** Judged again if the settings of the app change meanwhile. */
async function enqueue(context: Context, app: App, request: EmailRequest): Promise<Result<{ email: string }>> {
  const { store, links } = context
  let policy = appPolicy(app)
  for (let judgements = 0; judgements < judgementsMax; judgements++) {
    const result = judgeEmail(request, { policy, links, nowMs: store.now(), traceparent: null })
    if ('code' in result) return explain(result)
    const judged = {
      version: policy.version,
      verdict: { admit: { ...result.email, supersedeKey: null } },
      idempotency: null,
    }
    const queued = await store.enqueue({ appId: app.id, judged })
    if (queued.kind !== 'judge_again') return answerTo(context, app, queued)
    policy = appPolicy(queued.app)
  }
  return fail('app_changing', `The app ${app.slug} is being changed; try again.`)
}

async function answerTo(
  { access, emit, onQueued, store }: Context,
  app: App,
  result: Exclude<EnqueueResult, { kind: 'judge_again' }>,
): Promise<Result<{ email: string }>> {
  switch (result.kind) {
    case 'queued':
      onQueued()
      break
    case 'suppressed':
      emit({
        kind: 'emails_ended',
        ended: [{ emailId: result.emailId, appId: app.id, state: 'suppressed', reason: null }],
      })
      break
    case 'invalid_key':
      return isDisabled(app)
    case 'replayed':
    case 'idempotency_key_reused':
    case 'refused':
      throw new Error(`a test email was answered ${result.kind}`)
    default:
      return explain(toRejection(result))
  }
  const change = { app: app.id, target: result.emailId, before: null, after: null }
  await store.recordAction({ action: 'app.test_email', ...change }, access.actor)
  return done({ email: result.emailId })
}

function explain({ code, message, issues = [] }: Rejection) {
  const text = `The test email was refused (${code}): ${message ?? refusals[code].message}`
  return fail('test_email_refused', text, issues)
}
