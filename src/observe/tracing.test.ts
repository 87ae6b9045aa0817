import assert from 'node:assert/strict'
import { test } from 'node:test'
import { INVALID_SPAN_CONTEXT, trace } from '@opentelemetry/api'
import { traceRequest } from './tracing.ts'

test('an SDK that throws, at the start or the end of a span, costs the span and not the work', async () => {
  const broken = () => {
    throw new Error('the exporter has no disk')
  }
  const recording = { isRecording: () => true, setAttributes: broken, end: broken }
  const span = Object.assign(trace.wrapSpanContext(INVALID_SPAN_CONTEXT), recording)
  let starts = 0
  trace.setGlobalTracerProvider({
    getTracer: () => ({
      startSpan: () => (starts++ === 0 ? span : broken()),
      startActiveSpan: broken,
    }),
  })
  const traced = traceRequest({}, () => true)
  assert.equal(
    traced.run('render', () => 1),
    1,
  )
  assert.equal(await traced.wait('submit', async () => 2), 2)
  traced.end(() => ({}))
  assert.equal(traceRequest({}, () => true).traceparent, null)
  assert.equal(starts, 4)
})
