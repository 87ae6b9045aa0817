/** Answers to systems: they hold code and request id alone, because systems show them to people. */
import type { AuthHookAnswer, AuthHookResult } from './auth-hook.ts'

type Refused = Extract<AuthHookResult, { kind: 'refused' }>

export const taken: AuthHookAnswer = { status: 200, body: {} }

export const describeRefusal = ({ code, requestId }: Refused): string => `postern: ${code} (${requestId})`

/** The status of the refusal, and an error as the API has it, without its message. */
export const answerWithError = (result: AuthHookResult): AuthHookAnswer =>
  result.kind === 'queued'
    ? taken
    : {
        status: result.status,
        body: { ok: false, error: { code: result.code, requestId: result.requestId } },
      }
