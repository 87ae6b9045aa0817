/** Tells whether a link would be sent for an app, by the rules that judge a request, and what differs if not. */
import { type ComparedEntry, compareEntries } from '../domain/app/allowed-url.ts'
import type { App } from '../domain/app/app.ts'
import { appPolicy } from '../domain/app/app-policy.ts'
import { parseAuthLink } from '../domain/request/auth-link.ts'
import type { EmailType } from '../domain/request/email-request.ts'
import { type Rejection, refusals } from '../domain/request/rejection.ts'
import { judgeLink } from '../intake/judge-request.ts'

export type LinkCheck = {
  readonly allowed: boolean
  /** Whether the email would carry the link through a page of Postern. */
  readonly hosted: boolean
  /** The refusal that a request with this link would get; null if it is allowed. */
  readonly refusal: {
    readonly code: Rejection['code']
    readonly message: string
    readonly issues: readonly { readonly code: string; readonly message: string }[]
  } | null
  /** The entries of the allow-list for this kind of link. */
  readonly entries: readonly ComparedEntry[]
}

/** @param baseUrl the base URL of hosted links; null if the service has none */
export function checkLink(
  app: App,
  { url, type, baseUrl }: { url: string; type: EmailType; baseUrl: string | null },
): LinkCheck {
  const policy = appPolicy(app)
  const link = parseAuthLink(url, policy.schemes)
  if (!link.ok) return refusedBy({ code: 'invalid_url', issues: link.issues }, [])
  const judged = judgeLink(link.value, type, { policy, baseUrl })
  const entries = compareEntries(link.value, policy)
  if ('code' in judged) return refusedBy(judged, entries)
  return { allowed: true, hosted: judged.hosted !== null, refusal: null, entries }
}

function refusedBy({ code, message, issues = [] }: Rejection, entries: readonly ComparedEntry[]): LinkCheck {
  const refusal = {
    code,
    message: message ?? refusals[code].message,
    issues: issues.map((issue) => ({ code: issue.code, message: issue.message })),
  }
  return { allowed: false, hosted: false, refusal, entries }
}
