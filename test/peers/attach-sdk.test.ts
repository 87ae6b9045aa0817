/**
 * docs/observability.md: the file that attaches an SDK, as it stands, in a real process with a copy of the
 * SDK of its own.
 */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startServe } from '../support/cli.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

type Exported = {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] }
    scopeSpans: { spans: { name: string; traceId: string }[] }[]
  }[]
}

test('an SDK that is attached as the page says exports the trace of an email', async (t) => {
  const received: Exported[] = []
  const collector = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    received.push(JSON.parse(Buffer.concat(chunks).toString()))
    response.end('{}')
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  t.after(() => collector.close())
  const page = readFileSync(join(root, 'docs/observability.md'), 'utf8')
  const [, text = ''] = /```js\n(.*?)```/s.exec(page) ?? []
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'tracing.mjs'), text)
  mkdirSync(join(folder, 'node_modules'))
  cpSync(join(root, 'node_modules/@opentelemetry'), join(folder, 'node_modules/@opentelemetry'), {
    recursive: true,
  })
  const relay = await startSmtpServer(t)
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    NODE_OPTIONS: `--import ${join(folder, 'tracing.mjs')}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    TRACES_RATIO: '1',
  })
  await send(`${server.api}/v1/email`, JSON.stringify(validBody()), { authorization: `Bearer ${server.key}` })
  const spans = () =>
    received.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    )
  await eventually(() => spans().some(({ name }) => name === 'attempt'))
  const names = new Set(spans().map(({ name }) => name))
  for (const name of ['POST /v1/email', 'enqueue', 'attempt', 'render', 'submit'])
    assert.ok(names.has(name), name)
  assert.equal(new Set(spans().map(({ traceId }) => traceId)).size, 1)
  const attributes = received[0]?.resourceSpans[0]?.resource.attributes
  assert.equal(attributes?.find(({ key }) => key === 'service.name')?.value.stringValue, 'postern')
})
