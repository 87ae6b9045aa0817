/**
 * Tells whether a link would be sent for an app, by the rules that judge a request, and what differs if not.
 */
import { Type } from 'typebox'
import { compareEntries } from '../../domain/app/allowed-url.ts'
import type { App } from '../../domain/app/app.ts'
import { appPolicy } from '../../domain/app/app-policy.ts'
import { parseAuthLink } from '../../domain/request/auth-link.ts'
import { type EmailType, emailTypes } from '../../domain/request/email-kinds.ts'
import { type Rejection, refusals } from '../../domain/request/rejection.ts'
import { judgeLink } from '../../intake/judge-request.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { appStatus, closed, orNull } from '../operation/schema.ts'

const LinkCheck = closed({
  /** False also for an app that is disabled. */
  allowed: Type.Boolean({ description: 'Whether an email with this link would be accepted.' }),
  appStatus: appStatus(),
  hosted: Type.Boolean({ description: 'Whether the email would link to a Postern page instead.' }),
  refusal: orNull(
    closed({
      code: Type.String(),
      message: Type.String(),
      advice: orNull(Type.String({ description: 'The command that would allow the link.' })),
      issues: Type.Array(closed({ code: Type.String(), message: Type.String() })),
    }),
  ),
  entries: Type.Array(
    closed({
      entry: Type.String(),
      differs: orNull(Type.String({ description: 'The part of the link that differs; null if none does.' })),
    }),
  ),
})

export const checkLink = operation({
  method: 'POST',
  path: '/v1/apps/{app}/check-link',
  role: 'reader',
  summary: 'Checks whether a link would be sent for the app, and if not, why. Sends, counts and stores nothing.',
  body: closed({
    url: Type.String({
      maxLength: 10_000,
      examples: ['https://app.acme.test/auth?token=any'],
      description: 'Any text will do as the token; do not give a real one.',
    }),
    type: Type.Optional(Type.Enum([...emailTypes])),
  }),
  audited: false,
  answer: LinkCheck,
  run: ({ links }, { body: { url, type = 'magic_link' } }, app) =>
    done({ appStatus: app.status, ...judge(app, { url, type, baseUrl: links.baseUrl }) }),
})

function judge(app: App, { url, type, baseUrl }: { url: string; type: EmailType; baseUrl: string | null }) {
  const policy = appPolicy(app)
  const link = parseAuthLink(url, policy.schemes)
  if (!link.ok) return refusedBy({ code: 'invalid_url', issues: link.issues }, [])
  const judged = judgeLink(link.value, type, { policy, baseUrl })
  const entries = compareEntries(link.value, policy).map(({ entry, differs }) => ({ entry, differs }))
  if ('code' in judged) return refusedBy(judged, entries)
  return { allowed: app.status === 'active', hosted: judged.hosted !== null, refusal: null, entries }
}

type Entry = { entry: string; differs: string | null }

function refusedBy({ advice, code, message, issues = [] }: Rejection, entries: Entry[]) {
  const refusal = {
    code,
    message: message ?? refusals[code].message,
    advice: advice ?? null,
    issues: issues.map((issue) => ({ code: issue.code, message: issue.message })),
  }
  return { allowed: false, hosted: false, refusal, entries }
}
