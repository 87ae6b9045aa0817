/**
 * Judges one request by the settings of one app, without the store: body, link, hosted link, allow-list,
 * in the order of spec 7. All faults of the 400 classes are listed; the first class with a fault names
 * the refusal.
 */
import { hash } from 'node:crypto'
import { checkLinkAllowed, type LinkDifference } from '../domain/app/allowed-url.ts'
import type { AppPolicy } from '../domain/app/app-policy.ts'
import {
  chooseHostedLink,
  formatHostedPath,
  formatOriginalPath,
  type LinkOwner,
  type LinkTarget,
} from '../domain/app/hosted-link.ts'
import { chooseLinkPlace } from '../domain/app/link-domain.ts'
import { isTestSide, readSimulatedOutcome, realSide, simulatedOutcomes, testDomain } from '../domain/app/test-side.ts'
import { newId } from '../domain/id.ts'
import type { Issue, Parsed } from '../domain/parsed.ts'
import { type AuthLink, parseAuthLink, parseOriginalLink, readOrigin } from '../domain/request/auth-link.ts'
import { type EmailAddress, readDomain } from '../domain/request/email-address.ts'
import type { EmailContent, Purpose } from '../domain/request/email-content.ts'
import { type EmailType, emailKinds } from '../domain/request/email-kinds.ts'
import {
  type EmailRequest,
  type ParsedBody,
  parseEmailRequest,
  type ReceivedBody,
} from '../domain/request/email-request.ts'
import type { Rejection } from '../domain/request/rejection.ts'
import type { Judged, NewEmail } from '../store/store.ts'
import { chooseLanguage } from '../templates/locales/choose-language.ts'

/** A request as the HTTP layer received it. */
export type IncomingRequest = {
  readonly authorization: string | undefined
  readonly idempotencyKey: string | undefined
  readonly body: ReceivedBody
  /** The address of the client, which few requests are judged by. */
  readonly address: () => string
}

/** The hosted links of this service. Without a base URL it has none. */
export type LinkHost = {
  readonly baseUrl: string | null
  readonly seal: (owner: LinkOwner, target: LinkTarget) => string
}

/** The language of an email whose request asks for some. `isKnown`: one of those; otherwise the app's own. */
export type AskedLanguage = { readonly tag: string; readonly isKnown: boolean }

/** `rejection` is the answer if the store refuses the request by this judgement. */
export type Judgement = {
  readonly judged: Judged
  readonly rejection: Rejection | null
  /** Null if the request has no valid one. */
  readonly to: EmailAddress | null
  /** Null if the request asks for no language. */
  readonly language: AskedLanguage | null
  /** The request has a code, and the app allows none; also of a request that is refused. */
  readonly isCodeIgnored: boolean
}

export type JudgeContext = {
  readonly policy: AppPolicy
  readonly links: LinkHost
  readonly nowMs: number
  readonly traceparent: string | null
}

export function judgeRequest(request: IncomingRequest, context: JudgeContext): Judgement {
  const { version } = context.policy
  const keyIssues = checkIdempotencyKey(request.idempotencyKey)
  const idempotency =
    request.idempotencyKey === undefined || keyIssues.length > 0
      ? null
      : { key: request.idempotencyKey, bodyDigest: digestBody(request.body) }
  const body = parseEmailRequest(request.body, context.nowMs)
  const isCodeIgnored = body.code !== null && !context.policy.allowCodes
  const result = judgeBody(body, keyIssues, context)
  if (!('email' in result))
    return {
      judged: { version, verdict: { refuse: result.code }, idempotency },
      rejection: result,
      to: body.to,
      language: null,
      isCodeIgnored,
    }
  const { email, language = null } = result
  const judged = { version, verdict: { admit: email }, idempotency }
  return { judged, rejection: null, to: body.to, language, isCodeIgnored }
}

const digestBody = ({ bytes }: ReceivedBody): string => hash('sha256', bytes ?? 'too large', 'base64url')

function judgeBody(body: ParsedBody, keyIssues: readonly Issue[], context: JudgeContext): JudgedEmail | Rejection {
  const { policy } = context
  const refuse = (rejection: Rejection): Rejection => {
    const origin = body.url === undefined ? null : readOrigin(body.url, policy.schemes)
    return origin === null ? rejection : { ...rejection, origin }
  }
  const code = policy.allowCodes ? body.code : null
  const bodyIssues = [
    ...keyIssues,
    ...(body.request.ok ? [] : body.request.issues),
    ...(code === null || code.ok ? [] : code.issues),
  ]
  if (!body.request.ok || bodyIssues.length > 0) {
    const link = body.url === undefined ? null : parseAuthLink(body.url, policy.schemes)
    const linkIssues = link === null || link.ok ? [] : link.issues
    return refuse({ code: 'invalid_body', issues: [...bodyIssues, ...linkIssues] })
  }
  const judged = judgeEmail(withCode(body.request.value, code), context)
  return 'code' in judged ? refuse(judged) : judged
}

/** A code that its type does not take was refused. */
const withCode = (request: EmailRequest, code: Parsed<string> | null): EmailRequest =>
  code?.ok ? { ...request, code: code.value } : request

export type JudgedEmail = { readonly email: NewEmail; readonly language?: AskedLanguage }

/** Judges the link of a well-formed request, and makes the email. */
export function judgeEmail(request: EmailRequest, context: JudgeContext): JudgedEmail | Rejection {
  const { policy, links } = context
  const choice = chooseOutcome(request, policy)
  if (choice !== null) return choice
  const link = parseAuthLink(request.url, policy.schemes)
  if (!link.ok) return { code: 'invalid_url', issues: link.issues }
  const judged = judgeLink(link.value, request.type, { policy, baseUrl: links.baseUrl })
  if ('code' in judged) return judged
  return finish(context, request, { link: link.value, ...judged })
}

/** A test key sends only to addresses that choose an outcome. */
function chooseOutcome({ to }: EmailRequest, { id }: AppPolicy): Rejection | null {
  if (!isTestSide(id) || readSimulatedOutcome(to) !== null) return null
  return { code: 'invalid_body', issues: [choosesNone] }
}

const choosesNone: Issue = {
  field: 'to',
  code: 'not_a_test_recipient',
  message: `This is a test key. Send to OUTCOME@${testDomain} or OUTCOME+anything@${testDomain}, where OUTCOME is one of ${simulatedOutcomes.join(', ')}.`,
}

/** Makes the email of a request whose link may be sent, in the language that it asks for. */
function finish(
  context: JudgeContext,
  request: EmailRequest,
  link: Pick<JudgeableRequest, 'link' | 'hosted' | 'format'>,
): JudgedEmail {
  const asked = request.locale === undefined ? undefined : chooseLanguage(request.locale)
  return {
    email: toNewEmail(context, { request, ...link, ...(asked && { locale: asked }) }),
    ...(asked !== undefined && {
      language: { tag: asked ?? context.policy.locale, isKnown: asked !== null },
    }),
  }
}

/**
 * Judges the link of an auth server, which may have any parameters: a hosted link always carries it, so that
 * what is queued has the one parameter of every link.
 */
export function judgeOriginal(request: EmailRequest, context: JudgeContext): JudgedEmail | Rejection {
  const { policy, links } = context
  const link = parseOriginalLink(request.url, policy.schemes, request.rule === undefined)
  if (!link.ok) return { code: 'invalid_url', issues: link.issues }
  const difference = checkLinkAllowed(link.value, policy, request.rule)
  if (difference !== null) return notAllowed(difference, policy)
  if (links.baseUrl === null || policy.hostedLinks === 'off')
    return { code: 'invalid_hosted_link_config', issues: [originalNeedsPage] }
  return finish(context, request, { link: link.value, hosted: link.value, format: formatOriginalPath })
}

const originalNeedsPage: Issue = {
  field: 'hostedLinks',
  code: 'original_needs_hosted_link',
  message:
    'The link of an auth server is sent as a hosted link: set POSTERN_LINKS_BASE_URL, and hostedLinks of the app to another mode than off.',
}

/**
 * Judges a well-formed link by the settings of an app. `hosted` is what its page opens; null if the email
 * carries the link itself.
 */
export function judgeLink(
  link: AuthLink,
  type: EmailType,
  { policy, baseUrl }: { policy: AppPolicy; baseUrl: LinkHost['baseUrl'] },
): { readonly hosted: AuthLink | null } | Rejection {
  const choice = chooseHostedLink({ link, type, policy, baseUrl })
  if (choice.kind === 'misconfigured') return { code: 'invalid_hosted_link_config', issues: choice.issues }
  const difference = checkLinkAllowed(link, policy)
  if (difference !== null) return notAllowed(difference, policy)
  return { hosted: choice.kind === 'hosted' ? choice.destination : null }
}

const notAllowed = ({ compared, differs, flag, why }: LinkDifference, { slug }: AppPolicy): Rejection => ({
  code: 'url_not_allowed',
  message: `The link is not allowed for this app. ${compared} ${why}`,
  advice: `To allow it: postern app update ${slug} ${flag}`,
  differs,
})

/** A malformed idempotency key is a fault of the request, never ignored. */
function checkIdempotencyKey(key: string | undefined): Issue[] {
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return []
  const message = 'Give one Idempotency-Key of 1 to 255 visible ASCII characters.'
  return [{ field: 'Idempotency-Key', code: 'malformed_idempotency_key', message }]
}

type JudgeableRequest = {
  request: EmailRequest
  link: AuthLink
  hosted: AuthLink | null
  locale?: string
  /** The path of its hosted link. */
  format?: typeof formatHostedPath
}

function toNewEmail(
  context: JudgeContext,
  { request, link, hosted, locale, format = formatHostedPath }: JudgeableRequest,
): NewEmail {
  const { to, type, expiresAt } = request
  const language = locale === undefined ? {} : { locale }
  const carried =
    hosted === null
      ? { url: link.href }
      : {
          url: hostedUrl(
            context,
            { type, destination: hosted.raw, expiresAt, ...language, ...readPurpose(request) },
            format,
          ),
          hosted: true as const,
        }
  return {
    id: newId('em', context.nowMs),
    type,
    expiresAt,
    traceparent: context.traceparent,
    supersedeKey: context.policy.supersede ? toSupersedeKey(request, link) : null,
    content: {
      to,
      ...carried,
      ...readNames(request),
      ...readCode(request, link),
      ...readPurpose(request),
      ...language,
      messageIdDomain: readDomain(context.policy.fromAddress),
    },
  }
}

/**
 * The type and purpose of an email, and its link without the query, which holds the secret. One with its
 * secret elsewhere differs from each other one.
 */
const toSupersedeKey = ({ type, purpose }: EmailRequest, { href }: AuthLink): string | null =>
  emailKinds[type].isSuperseded ? `${type} ${purpose ?? ''} ${href.replace(/\?[^#]*/, '')}` : null

const readNames = ({ organisationName, inviterName }: EmailRequest) => ({
  ...(organisationName !== undefined && { organisationName }),
  ...(inviterName !== undefined && { inviterName }),
})

const readPurpose = ({ purpose }: EmailRequest): { purpose?: Purpose } => (purpose === undefined ? {} : { purpose })

/** A link whose token is the code leads to where the code is typed. */
function readCode({ code }: EmailRequest, link: AuthLink): Pick<EmailContent, 'code' | 'codeFirst'> {
  if (code === undefined) return {}
  return link.token === code ? { code, codeFirst: true } : { code }
}

function hostedUrl({ policy, links }: JudgeContext, target: LinkTarget, format: typeof formatHostedPath): string {
  const { baseUrl, domain } = chooseLinkPlace(policy.linkDomain, links.baseUrl ?? '')
  return `${baseUrl}${format(policy.slug, links.seal({ appId: realSide(policy.id), domain }, target))}`
}
