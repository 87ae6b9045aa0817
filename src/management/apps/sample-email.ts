/** Emails with sample content: a preview, and a test email that is sent. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import { appPolicy } from '../../domain/app/app-policy.ts'
import { chooseHostedLink } from '../../domain/app/hosted-link.ts'
import { sampleAddress, sampleLifeMs, sampleUrl } from '../../domain/app/sample-link.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { parseAuthLink } from '../../domain/request/auth-link.ts'
import { type EmailAddress, parseEmailAddress } from '../../domain/request/email-address.ts'
import { type CodePlace, codePlaces } from '../../domain/request/email-content.ts'
import { type EmailType, emailKinds, emailTypes } from '../../domain/request/email-kinds.ts'
import type { EmailRequest } from '../../domain/request/email-request.ts'
import { sampleCode } from '../../domain/request/one-time-code.ts'
import { type Rejection, refusals } from '../../domain/request/rejection.ts'
import { judgementsMax, toRejection } from '../../intake/accept-email.ts'
import { judgeEmail } from '../../intake/judge-request.ts'
import type { EnqueueResult } from '../../store/store.ts'
import { renderEmail } from '../../templates/emails/render-email.ts'
import { askedMax, chooseLanguage } from '../../templates/locales/choose-language.ts'
import { languageOf } from '../../templates/locales/locales.ts'
import { openPage } from '../../templates/pages/hosted-page.ts'
import { isServiceAdmin } from '../operation/access.ts'
import { checkSchema } from '../operation/check-schema.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done, fail, invalid, type Result } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { AppBody, AppPatch, mergePatch, parseSettings } from '../settings-schema.ts'

const askedLocale = Type.String({
  maxLength: askedMax,
  description:
    "A tag (BCP 47) or an Accept-Language list. If Postern has none of the languages, the app's language is used.",
  examples: ['pt-BR'],
})

const askedCode = Type.Enum([...codePlaces], {
  description:
    'Where the email has a sample code: none, beside the link, or first, as for a link whose token is the code. Beside it by default if the app allows codes.',
})

function choosePlace(
  { allowCodes }: Pick<AppSettings, 'allowCodes'>,
  type: EmailType,
  asked: CodePlace | undefined,
): CodePlace {
  if (!emailKinds[type].takesCode) return 'none'
  return asked ?? (allowCodes ? 'beside' : 'none')
}

export const previewEmail = operation({
  method: 'POST',
  path: '/v1/apps/{app}/preview',
  role: 'reader',
  summary: 'Renders an email of the app with sample content. Sends and stores nothing.',
  body: closed({
    type: Type.Enum([...emailTypes]),
    settings: Type.Optional(AppPatch),
    locale: Type.Optional(askedLocale),
    code: Type.Optional(askedCode),
  }),
  audited: false,
  answer: closed({
    subject: Type.String(),
    html: Type.String(),
    text: Type.String(),
    language: Type.String({ description: 'The tag of the language it is written in.' }),
    page: orNull(Type.String(), 'The HTML of the page that a hosted link would open; null if the app allows no links.'),
  }),
  run(context, { body: { type, settings: patch, locale, code } }, app) {
    const { store } = context
    const settings = patch === undefined ? done(app.settings) : patched(context, app, patch)
    if (!settings.ok) return settings
    const chosen = locale === undefined ? null : chooseLanguage(locale)
    const place = choosePlace(settings.value, type, code)
    const content = {
      ...(place !== 'none' && { code: sampleCode }),
      ...(place === 'first' && { codeFirst: true as const }),
      ...(chosen !== null && { locale: chosen }),
      to: sampleAddress,
      ...previewLink(context, { ...app, settings: settings.value }, { type, place }),
      organisationName: 'Example Organisation',
      inviterName: 'Sam Example',
      messageIdDomain: 'example.com',
    }
    const times = { expiresAt: store.now() + sampleLifeMs, lifeLeftMs: sampleLifeMs }
    const email = renderEmail({ app: settings.value, type, content, ...times })
    const page = previewPage({ ...app, settings: settings.value }, type, {
      language: email.language,
      nowMs: store.now(),
    })
    return done({ ...email, page })
  },
})

/** The page of a hosted link, also where the app has none. */
function previewPage(app: App, type: EmailType, { language, nowMs }: { language: string; nowMs: number }) {
  const policy = appPolicy(app)
  const request = testRequest(app, { to: sampleAddress, type, nowMs, locale: undefined, place: 'none' })
  const link = request && parseAuthLink(request.url, policy.schemes)
  if (!link?.ok) return null
  const always = { ...policy, hostedLinks: 'always' } as const
  const chosen = chooseHostedLink({ link: link.value, type, policy: always, baseUrl: 'https://links.example.com' })
  if (chosen.kind !== 'hosted') return null
  return openPage({
    ...languageOf(language, app.settings.formOfAddress),
    app: app.settings,
    type,
    destination: chosen.destination,
  }).body
}

/** The link as an email would have it: hosted, if the app's settings say so. */
function previewLink({ links, store }: Context, app: App, { type, place }: Pick<TestEmail, 'type' | 'place'>) {
  const nowMs = store.now()
  const request = testRequest(app, { to: sampleAddress, type, nowMs, locale: undefined, place })
  const judged = request && judgeEmail(request, { policy: appPolicy(app), links, nowMs, traceparent: null })
  if (judged !== null && 'email' in judged) {
    const { hosted, url } = judged.email.content
    return { url, ...(hosted && { hosted }) }
  }
  return { url: request?.url ?? `https://example.com/auth?token=${place === 'first' ? sampleCode : 'sample'}` }
}

function patched(context: Context, { settings, status }: App, patch: unknown): Result<AppSettings> {
  const merged = checkSchema(AppBody, mergePatch({ ...settings, status }, patch))
  const parsed = merged.ok
    ? parseSettings(merged.value, { ...context, givesDomains: isServiceAdmin(context.access) })
    : merged
  if (parsed.ok) return done(parsed.value)
  return invalid(parsed.issues.map((issue) => ({ ...issue, field: `settings.${issue.field}` })))
}

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
