/** Says what becomes of the messages of an auth server. Sends, counts and stores nothing. */
import { Type } from 'typebox'
import { parseAllowedUrl } from '../../domain/app/allowed-entry.ts'
import type { App } from '../../domain/app/app.ts'
import { appPolicy } from '../../domain/app/app-policy.ts'
import type { AuthHook } from '../../domain/auth-hooks/auth-hook.ts'
import { purposes } from '../../domain/request/email-content.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { refusals } from '../../domain/request/rejection.ts'
import { judgeMessages, readMessages } from '../../intake/accept-auth-hook.ts'
import type { JudgeContext, Judgement } from '../../intake/judge-request.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { iso } from '../resources.ts'
import { requireSystem } from './connect-auth-hook.ts'

const CheckedMessage = closed({
  message: orNull(Type.String({ description: "The system's own name for it; null if the payload names none." })),
  result: Type.Enum(['sent', 'not_sent', 'refused'], { description: '`not_sent`: a notice.' }),
  type: orNull(Type.Enum([...emailTypes])),
  purpose: orNull(Type.Enum([...purposes])),
  hosted: Type.Boolean({ description: 'Whether its link is a hosted link.' }),
  code: Type.Boolean({ description: 'Whether the email shows a code.' }),
  expiresAt: orNull(Type.String({ format: 'date-time' })),
  refusal: orNull(closed({ code: Type.String(), message: Type.String() })),
  issues: Type.Array(closed({ field: Type.String(), code: Type.String(), message: Type.String() })),
})

export const checkAuthHook = operation({
  method: 'POST',
  path: '/v1/apps/{app}/auth-hooks/{system}/check',
  role: 'reader',
  summary:
    'Says what becomes of the messages of an auth server: of a payload, or else of a sample of each kind, whose hosts count as allowed. Sends, counts and stores nothing, and repeats no address, link or code.',
  body: closed({ payload: Type.Optional(Type.Unknown({ description: 'A body as the system posts it.' })) }),
  audited: false,
  answer: closed({ items: Type.Array(CheckedMessage) }),
  errors: ['not_found'],
  run({ links, store }, { body: { payload }, params }, app) {
    const system = requireSystem(params.system)
    if ('ok' in system) return system
    const context = { policy: appPolicy(app), links, nowMs: store.now(), traceparent: null }
    if (payload !== undefined) return done({ items: check(system, payload, context) })
    const withSamples = { ...context, policy: allowSamples(app) }
    return done({
      items: Object.keys(system.kinds).flatMap((kind) => check(system, system.sample(kind), withSamples)),
    })
  },
})

/** The hosts of samples are none that an app would allow. */
const sampleHosts = ['https://app.example.com', 'https://auth.example.com', 'https://id.example.com']

function allowSamples(app: App): JudgeContext['policy'] {
  const policy = appPolicy(app)
  const samples = sampleHosts.map(parseAllowedUrl).flatMap((entry) => (entry.ok ? [entry.value] : []))
  return { ...policy, allowedUrls: [...policy.allowedUrls, ...samples] }
}

function check(system: AuthHook, payload: unknown, context: JudgeContext) {
  const messages = readMessages(system, payload)
  return judgeMessages(system, messages, context).map((judgement, n) =>
    present(messages.ok ? (messages.value[n]?.kind ?? null) : null, judgement),
  )
}

function present(message: string | null, { judged: { verdict }, rejection }: Judgement) {
  const none = { type: null, purpose: null, hosted: false, code: false, expiresAt: null, issues: [] }
  if (rejection?.code === 'notice_not_sent') return { ...none, message, result: 'not_sent' as const, refusal: null }
  if (rejection !== null || !('admit' in verdict)) {
    const { code, issues = [], message: text } = rejection ?? { code: 'unsupported_email' as const }
    const refusal = { code, message: text ?? refusals[code].message }
    return { ...none, message, result: 'refused' as const, refusal, issues: [...issues] }
  }
  const { content, expiresAt, type } = verdict.admit
  return {
    ...{ message, result: 'sent' as const, type, refusal: null, issues: [] },
    purpose: content.purpose ?? null,
    hosted: content.hosted === true,
    code: content.code !== undefined,
    expiresAt: iso(expiresAt),
  }
}
