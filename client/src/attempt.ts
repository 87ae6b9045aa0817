/**
 * One POST and its outcome, read from the status. A 202 means that the email is queued, even if the
 * rest of the answer never arrives. Without an answer the email may or may not be queued; a repeat
 * under the same idempotency key is safe.
 */
import { bounded } from './bounded.ts'
import type { SendOutcome } from './email.ts'
import { type Issue, PosternError } from './postern-error.ts'
import type { Settings } from './settings.ts'

export type EmailPost = {
  readonly body: string
  readonly idempotencyKey: string
  /** Removes secrets from text that the server sent. */
  readonly redact: (text: string) => string
}

/** Never rejects. Takes at most `ms`, the body included. */
export async function attempt(
  settings: Settings,
  post: EmailPost,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<SendOutcome> {
  const { fetch, endpoint } = settings
  let answered: Response | undefined
  try {
    return await bounded(ms, signal, async (inner) => {
      answered = await fetch(endpoint, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${settings.deliveryKey}`,
          'content-type': 'application/json',
          'idempotency-key': post.idempotencyKey,
        },
        body: post.body,
        redirect: 'manual',
        signal: inner,
      })
      return readAnswer(answered, await readJson(answered), post.redact)
    })
  } catch (error) {
    if (answered !== undefined) return readAnswer(answered, undefined, post.redact)
    return { ok: false, error: error instanceof PosternError ? error : unreachable(endpoint, error) }
  }
}

const isJson = ({ headers }: Response) => /^application\/json\b/i.test(headers.get('content-type') ?? '')

async function readJson(response: Response): Promise<unknown> {
  if (isJson(response)) return response.json()
  await response.body?.cancel()
  return undefined
}

function readAnswer(response: Response, json: unknown, redact: (text: string) => string): SendOutcome {
  const { status, headers } = response
  if (status === 202 && isJson(response)) {
    return {
      ok: true,
      emailId: headers.get('email-id'),
      replayed: headers.has('idempotent-replayed'),
      codeIgnored: headers.get('postern-ignored') === 'code',
    }
  }
  const error = toFields(toFields(json).error)
  const retryAfterMs = readRetryAfter(headers.get('retry-after'))
  return { ok: false, error: readError(error, { status, retryAfterMs }, redact) }
}

function readError(
  { code, message, requestId, issues }: Record<string, unknown>,
  answer: { status: number; retryAfterMs: number | undefined },
  redact: (text: string) => string,
): PosternError {
  const known = typeof code === 'string' && /^\w{1,64}$/.test(code) && typeof message === 'string'
  // The service has one endpoint and one method, so a 404 or 405 means a wrong port or path.
  if (!known || answer.status === 404 || answer.status === 405) {
    const text = `An answer with status ${answer.status} that is not from Postern: check baseUrl and any proxy in between.`
    return new PosternError('unexpected_response', text, answer)
  }
  const text = (value: unknown) => (typeof value === 'string' ? redact(value) : '')
  const list = Array.isArray(issues) ? issues.map((issue) => readIssue(toFields(issue), text)) : []
  const [first] = list
  const detail = first === undefined ? '' : ` ${first.field}: ${first.message}`
  const details = { ...answer, requestId: text(requestId) || undefined, issues: list }
  return new PosternError(redact(code), redact(message) + detail, details)
}

const toFields = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const readIssue = (issue: Record<string, unknown>, text: (value: unknown) => string): Issue => ({
  field: text(issue.field),
  code: text(issue.code),
  message: text(issue.message),
})

/** Seconds or a date (RFC 9110 §10.2.3), as milliseconds from now. */
function readRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

/** Gives the cause's code, not the cause: a caller's own `fetch` may put the request into it. */
function unreachable(endpoint: string, error: unknown): PosternError {
  const { code, cause } = toFields(error)
  const reason = [toFields(cause).code, code].find(
    (text): text is string => typeof text === 'string' && /^[A-Z][A-Z_\d]{2,39}$/.test(text),
  )
  const { origin } = new URL(endpoint)
  return new PosternError('network_error', `No answer from ${origin}${reason ? ` (${reason})` : ''}.`)
}
