/** A collector of traces, and an SDK for a process whose spans go there, as docs/tracing.md says. */
import { cpSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Variables } from './cli.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** `env` attaches examples/tracing/ with a copy of the SDK of its own. `bodies` is what was received. */
export async function attachSdk(scope: Scope): Promise<{ env: Variables; bodies: readonly string[] }> {
  const bodies: string[] = []
  const collector = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    bodies.push(Buffer.concat(chunks).toString())
    response.end('{}')
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  atEnd(scope, () => collector.close())
  const folder = temporaryFolder(scope)
  cpSync(join(root, 'examples/tracing/tracing.mjs'), join(folder, 'tracing.mjs'))
  mkdirSync(join(folder, 'node_modules'))
  cpSync(join(root, 'node_modules/@opentelemetry'), join(folder, 'node_modules/@opentelemetry'), {
    recursive: true,
  })
  const env = {
    NODE_OPTIONS: `--import ${join(folder, 'tracing.mjs')}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    TRACES_RATIO: '1',
  }
  return { env, bodies }
}
