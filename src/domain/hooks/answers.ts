/** Answers to systems: they hold code and request id alone, because systems show them to people. */
import type { HookAnswer, HookResult } from './hook-system.ts'

type Refused = Extract<HookResult, { kind: 'refused' }>

export const taken: HookAnswer = { status: 200, body: {} }

export const describeRefusal = ({ code, requestId }: Refused): string => `postern: ${code} (${requestId})`

/** The status of the refusal, and an error as the API has it, without its message. */
export const answerWithError = (result: HookResult): HookAnswer =>
  result.kind === 'queued'
    ? taken
    : {
        status: result.status,
        body: { ok: false, error: { code: result.code, requestId: result.requestId } },
      }
