/**
 * docs/tracing.md: the file that attaches an SDK, as it stands, in a real process with a copy of the
 * SDK of its own.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServe } from '../support/cli.ts'
import { attachSdk } from '../support/collector.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

type Exported = {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] }
    scopeSpans: { spans: { name: string; traceId: string }[] }[]
  }[]
}

test('an SDK that is attached as the page says exports the trace of an email', async (t) => {
  const { env, bodies } = await attachSdk(t)
  const relay = await startSmtpServer(t)
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    ...env,
  })
  await send(`${server.api}/v1/email`, JSON.stringify(validBody()), { authorization: `Bearer ${server.key}` })
  const received = () => bodies.map((body) => JSON.parse(body) as Exported)
  const spans = () =>
    received().flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    )
  await eventually(() => spans().some(({ name }) => name === 'attempt'))
  const names = new Set(spans().map(({ name }) => name))
  for (const name of ['POST /v1/email', 'enqueue', 'attempt', 'render', 'submit']) assert.ok(names.has(name), name)
  assert.equal(new Set(spans().map(({ traceId }) => traceId)).size, 1)
  const attributes = received()[0]?.resourceSpans[0]?.resource.attributes
  assert.equal(attributes?.find(({ key }) => key === 'service.name')?.value.stringValue, 'postern')
})
