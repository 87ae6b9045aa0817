/**
 * Traces, by the API of OpenTelemetry alone: without an SDK, which an operator attaches with `node --import`,
 * every call does nothing. One trace leads from `POST /v1/email` to the 250 of the first attempt: the store
 * keeps the `traceparent` of a sampled request with its email. A retry is a trace of its own with a link to
 * it, so no trace lives for hours. No attribute holds an address, a link or a token.
 */
import {
  type Attributes,
  type Context,
  diag,
  INVALID_SPAN_CONTEXT,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import type { Reply, Stage } from '../domain/delivery/reply.ts'
import type { Claim } from '../store/store.ts'
import type { RequestAnswered } from './events.ts'

const tracer = trace.getTracer('postern')

/**
 * A span that is open. `end` closes it; a child ends before its parent. One that records nothing has no
 * children.
 */
export class Trace {
  readonly #span: Span
  readonly #context: Context

  constructor(span: Span, parent: Context) {
    this.#span = span
    this.#context = trace.setSpan(parent, span)
  }

  /** The `traceparent` of W3C Trace Context; null if the span is not sampled. */
  get traceparent(): string | null {
    const { spanId, traceFlags, traceId } = this.#span.spanContext()
    const isSampled = this.#span.isRecording() && (traceFlags & TraceFlags.SAMPLED) !== 0
    return isSampled ? `00-${traceId}-${spanId}-01` : null
  }

  /** Runs `work` in a child span. */
  run<T>(name: string, work: () => T): T {
    if (!this.#span.isRecording()) return work()
    const child = this.#child(name)
    try {
      const result = work()
      child.end(() => ({}))
      return result
    } catch (error) {
      child.end(() => ({ failed: true }))
      throw error
    }
  }

  /** The same for work that takes time. `describe` makes the attributes of its result. */
  wait<T>(name: string, work: () => Promise<T>, describe: (result: T) => SpanResult = () => ({})): Promise<T> {
    return this.#span.isRecording() ? this.#record(name, work, describe) : work()
  }

  async #record<T>(name: string, work: () => Promise<T>, describe: (result: T) => SpanResult): Promise<T> {
    const child = this.#child(name)
    try {
      const result = await work()
      child.end(() => describe(result))
      return result
    } catch (error) {
      child.end(() => ({ failed: true }))
      throw error
    }
  }

  #child(name: string): Trace {
    return new Trace(startSpan(name, {}, this.#context), this.#context)
  }

  end(describe: () => SpanResult): void {
    if (!this.#span.isRecording()) return
    const { failed = false, ...attributes } = describe()
    withoutThrowing(() => {
      this.#span.setAttributes(attributes)
      if (failed) this.#span.setStatus({ code: SpanStatusCode.ERROR })
      this.#span.end()
    })
  }
}

/**
 * An SDK that fails costs a span, not an email: an attempt that failed after the relay took the message would
 * be made again.
 */
function withoutThrowing<T>(work: () => T): T | null {
  try {
    return work()
  } catch (error) {
    diag.error('Postern: a span was lost', error)
    return null
  }
}

const noSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT)

const startSpan = (name: string, options: SpanOptions, parent: Context): Span =>
  withoutThrowing(() => tracer.startSpan(name, options, parent)) ?? noSpan

/** The attributes of a span at its end, by their OpenTelemetry names. */
export type SpanResult = Attributes & { readonly failed?: boolean }

/** For work that no trace follows. */
export const noTrace = new Trace(noSpan, ROOT_CONTEXT)

function newTrace(name: string, options: SpanOptions, parent: Context): Trace {
  const span = startSpan(name, options, parent)
  return span.isRecording() ? new Trace(span, parent) : noTrace
}

/**
 * The span of a request. Its parent is that of the client, if the SDK reads it from the headers and the
 * client is known: otherwise anybody could have every request sampled.
 */
export function traceRequest(headers: Readonly<Record<string, unknown>>, isKnown: () => boolean): Trace {
  const hasParent = propagation.fields().some((name) => headers[name] !== undefined)
  const parent = hasParent && isKnown() ? propagation.extract(ROOT_CONTEXT, headers) : ROOT_CONTEXT
  const attributes = { 'http.request.method': 'POST', 'http.route': '/v1/email' }
  return newTrace('POST /v1/email', { kind: SpanKind.SERVER, attributes }, parent)
}

/** An attempt that is made within this time belongs to the trace of its request. */
const sameTraceMs = 10_000

/**
 * The span of one attempt: a child of the request if it is the first and is made soon, otherwise a trace of
 * its own with a link to it. Attempts that found no relay do not count, so the first may come hours later.
 */
export function traceAttempt(claim: Claim): Trace {
  const request = parseTraceparent(claim.traceparent)
  if (request === null) return noTrace
  const attributes = {
    'messaging.system': 'postern',
    'messaging.message.id': claim.emailId,
    'postern.app': claim.appId,
    'postern.type': claim.type,
    'postern.attempt': claim.attempt,
  }
  const options = { kind: SpanKind.CONSUMER, attributes }
  const parent = trace.setSpanContext(ROOT_CONTEXT, request)
  if (claim.attempt === 1 && claim.ageMs < sameTraceMs) return newTrace('attempt', options, parent)
  const linked = { ...options, links: [{ context: request }] }
  return newTrace('attempt', linked, ROOT_CONTEXT)
}

/** The id of a trace, for the log; null without one. */
export const readTraceId = (traceparent: string | null): string | null => parseTraceparent(traceparent)?.traceId ?? null

function parseTraceparent(traceparent: string | null): SpanContext | null {
  if (traceparent === null) return null
  const [, traceId = '', spanId = ''] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(traceparent) ?? []
  const context = { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true }
  return isSpanContextValid(context) ? context : null
}

export function describeAnswer(answer: RequestAnswered): SpanResult {
  const { appId, code, keyId, status } = answer
  return {
    'http.response.status_code': status,
    'postern.code': code,
    ...(appId !== null && { 'postern.app': appId }),
    ...(keyId !== null && { 'postern.key': keyId }),
    ...(answer.status === 202 && { 'messaging.message.id': answer.emailId }),
    failed: status >= 500,
  }
}

export const internalError = (): SpanResult => ({ 'http.response.status_code': 500, failed: true })

export function describeOutcome(outcome: DeliveryOutcome): SpanResult {
  const described = 'reply' in outcome ? describeReply(outcome) : {}
  const failed = outcome.kind === 'failed' || outcome.kind === 'expired'
  return { ...described, 'postern.outcome': outcome.kind, failed }
}

type Replied = {
  readonly relay: string | null
  readonly reply?: Reply
  readonly stage?: Stage
  readonly failed?: boolean
}

export const describeReply = ({ relay, reply, stage, failed = false }: Replied): SpanResult => ({
  ...(relay !== null && { 'server.address': relay }),
  ...(reply?.code != null && { 'smtp.reply_code': reply.code }),
  ...(reply?.enhanced != null && { 'smtp.enhanced_code': reply.enhanced }),
  'smtp.stage': stage,
  failed,
})
