/**
 * One call of an auth server, or one message over SMTP, from its body to its answer. Each message becomes a
 * request of the app and is judged as such; all of a call are judged before the first is queued.
 */

import { hash } from 'node:crypto'
import type { AppPolicy } from '../domain/app/app-policy.ts'
import type { AuthHook, AuthHookMessage } from '../domain/auth-hooks/auth-hook.ts'
import { systemSettings } from '../domain/auth-hooks/auth-hook-settings.ts'
import { chooseLink, type HookedMessage } from '../domain/auth-hooks/choose-link.ts'
import { present } from '../domain/auth-hooks/fields.ts'
import type { SubmittedMail } from '../domain/auth-hooks/smtp/mail-system.ts'
import { type Issue, type Parsed, parsed } from '../domain/parsed.ts'
import { readOrigin } from '../domain/request/auth-link.ts'
import { type EmailAddress, parseEmailAddress } from '../domain/request/email-address.ts'
import { emailKinds } from '../domain/request/email-kinds.ts'
import { type EmailRequest, readName } from '../domain/request/email-request.ts'
import { parseCode } from '../domain/request/one-time-code.ts'
import type { Rejection } from '../domain/request/rejection.ts'
import type { Judged } from '../store/store.ts'
import { type AcceptAnswer, type AcceptDeps, acceptJudged, type Presented } from './accept-email.ts'
import { type JudgeContext, type JudgedEmail, type Judgement, judgeEmail, judgeOriginal } from './judge-request.ts'

/** `body`: the parsed JSON; undefined if the bytes are none. */
export type AuthHookCall = Presented & { readonly system: AuthHook; readonly body: unknown }

/** The answer, and the name of its message; null if the body names none. */
export type AuthHookOutcome = { readonly answer: AcceptAnswer; readonly message: string | null }

/** An outcome for each message, up to the first that is refused. */
export async function acceptAuthHook(
  deps: AcceptDeps,
  { system, body, ...presented }: AuthHookCall,
): Promise<AuthHookOutcome[]> {
  const messages = readMessages(system, body, null)
  const outcomes: AuthHookOutcome[] = []
  const count = messages.ok ? messages.value.length : 1
  let judged: { readonly version: number; readonly all: readonly Judgement[] } | null = null
  for (let n = 0; n < count; n++) {
    const judge = (context: JudgeContext) => {
      const { version } = context.policy
      if (judged?.version !== version) judged = { version, all: judgeMessages(system, messages, context) }
      const { all } = judged
      return all.find(({ rejection }) => rejection !== null) ?? (all[n] as Judgement)
    }
    const answer = await acceptJudged(deps, presented, judge)
    outcomes.push({ answer, message: messages.ok ? (messages.value[n]?.kind ?? null) : null })
    if ('rejection' in answer) break
  }
  return outcomes
}

export type Submission = Presented & { readonly system: AuthHook; readonly mail: Parsed<SubmittedMail> }

/** One message over SMTP. The rules of the app say which email it is. */
export async function acceptSubmission(
  deps: AcceptDeps,
  { mail, system, ...presented }: Submission,
): Promise<AuthHookOutcome> {
  let message: string | null = null
  const answer = await acceptJudged(deps, presented, (context) => {
    const messages = mail.ok ? readMessages(system, mail.value, context.policy) : mail
    message = messages.ok ? `${system.name}.${messages.value[0]?.kind}` : system.name
    return judgeMessages(system, messages, context)[0] as Judgement
  })
  return { answer, message }
}

/** @param policy of the app; null for a system that posts, which needs none to be read */
export function readMessages(
  system: AuthHook,
  body: unknown,
  policy: Pick<AppPolicy, 'authHooks' | 'slug'> | null,
): Parsed<readonly AuthHookMessage[]> {
  if (body === undefined)
    return {
      ok: false,
      issues: [{ field: 'body', code: 'not_json', message: 'The body is not valid JSON.' }],
    }
  const messages = system.read(body, {
    slug: policy?.slug ?? '',
    settings: systemSettings(policy?.authHooks ?? {}, system.name),
  })
  if (!messages.ok || messages.value.length > 0) return messages
  return { ok: false, issues: [{ field: 'body', code: 'no_message', message: 'The body has no message.' }] }
}

/** Codes of messages that are well-formed, and none that Postern sends. */
const unsupported = new Set(['unknown_kind', 'no_link', 'several_links', 'other_link'])

/** The judgements of all messages; one refusal if the body is none. */
export function judgeMessages(
  system: AuthHook,
  messages: Parsed<readonly AuthHookMessage[]>,
  context: JudgeContext,
): Judgement[] {
  if (messages.ok) return messages.value.map((message) => judgeMessage(system, message, context))
  const isUnknown = messages.issues.some(({ code }) => unsupported.has(code))
  return [refuse({ code: isUnknown ? 'unsupported_email' : 'invalid_body', issues: messages.issues }, context)]
}

const refuse = (
  rejection: Rejection,
  { policy: { version } }: JudgeContext,
  to: EmailAddress | null = null,
): Judgement => ({
  judged: { version, verdict: { refuse: rejection.code }, idempotency: null },
  rejection,
  to,
  language: null,
  isCodeIgnored: false,
})

function judgeMessage(system: AuthHook, message: AuthHookMessage, context: JudgeContext): Judgement {
  const kind = system.kinds[message.kind]
  if (kind === undefined || kind === 'notice') return refuse({ code: 'notice_not_sent' }, context)
  const settings = systemSettings(context.policy.authHooks, system.name)
  const request = toRequest({ system, message, settings }, context)
  if ('issues' in request) return refuse({ code: 'invalid_body', issues: request.issues }, context)
  const { email, isOriginal } = request
  const result: JudgedEmail | Rejection = isOriginal ? judgeOriginal(email, context) : judgeEmail(email, context)
  if ('code' in result) {
    const origin = readOrigin(email.url, context.policy.schemes)
    return refuse(origin === null ? result : { ...result, origin }, context, email.to)
  }
  const { version } = context.policy
  const judged: Judged = {
    version,
    verdict: { admit: result.email },
    idempotency: toIdempotency(system, message),
  }
  return { judged, rejection: null, to: email.to, language: result.language ?? null, isCodeIgnored: false }
}

/** A repeat is known by what it says, because systems repeat a message under another id and time. */
function toIdempotency({ name }: AuthHook, { once }: AuthHookMessage): Judged['idempotency'] {
  if (once === null) return null
  const digest = hash('sha256', once, 'base64url')
  // No key of an app has a space.
  return { key: `hook ${name} ${digest}`, bodyDigest: digest }
}

type Request = { readonly email: EmailRequest; readonly isOriginal: boolean } | { readonly issues: readonly Issue[] }

/** The request that the message makes of the app. */
function toRequest(hooked: HookedMessage, { nowMs, policy }: JudgeContext): Request {
  const { system, message } = hooked
  const kind = system.kinds[message.kind]
  if (kind === undefined || kind === 'notice') return { issues: [] }
  const { type } = kind
  const to = parseEmailAddress(message.to, 'to')
  const code = readCode(message, policy.allowCodes)
  const link = chooseLink(hooked)
  const issues = [to, code, link, checkExpiry(message, nowMs)].flatMap((part) => (part.ok ? [] : part.issues))
  if (!to.ok || !code.ok || !link.ok) return { issues }
  const { isOriginal, url } = link.value
  const { locale, notAfter = Number.POSITIVE_INFINITY, rule } = message
  const expiresAt = Math.min(nowMs + lifeOf(hooked, kind.lifeSeconds) * 1000, notAfter)
  const common = { to: to.value, type, url, expiresAt, ...present({ locale, rule }) }
  if (emailKinds[type].hasNames) return { email: { ...common, ...readNames(hooked, policy.name) }, isOriginal }
  const purpose = message.purpose ?? kind.purpose
  const more = { ...(code.value !== null && { code: code.value }), ...(purpose !== undefined && { purpose }) }
  return { email: { ...common, ...more }, isOriginal }
}

/** A link that has expired is none that anybody can use. */
const checkExpiry = ({ notAfter }: AuthHookMessage, nowMs: number): Parsed<null> =>
  notAfter === undefined || notAfter > nowMs
    ? parsed(null)
    : { ok: false, issues: [{ field: 'message', code: 'link_expired', message: 'The link has expired.' }] }

/** A code that is not allowed, or is none, is left out, unless the message is nothing without it. */
function readCode({ code, original, token }: AuthHookMessage, isAllowed: boolean): Parsed<string | null> {
  if (code === undefined) return parsed(null)
  const hasLink = token !== undefined || original !== undefined
  const parsedCode = parseCode(code, false)
  if (isAllowed && (parsedCode.ok || !hasLink)) return parsedCode
  if (hasLink) return parsed(null)
  const message = 'This message is a code, and the app does not allow codes.'
  return { ok: false, issues: [{ field: 'allowCodes', code: 'codes_not_allowed', message }] }
}

/** In seconds. A life in the message is exact; a setting of the app replaces the system's usual one. */
function lifeOf({ message, settings }: HookedMessage, usual: number | null): number {
  const { lifeSeconds = {} } = settings
  const own = Object.hasOwn(lifeSeconds, message.kind) ? lifeSeconds[message.kind] : undefined
  return message.lifeSeconds ?? own ?? lifeSeconds.default ?? usual ?? 0
}

/** Names are the text of end users: one that breaks the rules is left out. */
function readNames({ message, settings }: HookedMessage, appName: string) {
  const organisationName =
    readName('organisationName', message.organisationName) ?? settings.organisationName ?? appName
  const inviterName = readName('inviterName', message.inviterName)
  return inviterName === undefined ? { organisationName } : { organisationName, inviterName }
}
