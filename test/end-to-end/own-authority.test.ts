/** Certificates of one's own authority: Node reads `NODE_EXTRA_CA_CERTS` when a process starts. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { newToken } from '../../src/domain/operator/management-token.ts'
import { newAcme, runProcess, serveEnvironment, spawnServe } from '../support/cli.ts'
import { validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd, type Scope, temporaryFolder } from '../support/temporary.ts'

const file = (name: string) => fileURLToPath(new URL(`../support/tls/localhost.${name}.pem`, import.meta.url))
const tls = { cert: readFileSync(file('cert')), key: readFileSync(file('key')) }
const trusting = { NODE_EXTRA_CA_CERTS: file('cert') }

test('a relay whose certificate is of an own authority is used where that is trusted, and named where not', async (t) => {
  const { port, first } = await startSmtpServer(t, { ...tls, secure: true })
  const env = { ...(await serveEnvironment(t)), POSTERN_SMTP_URL: `smtps://localhost:${port}` }
  const key = await newAcme(env)
  const untrusted = await runProcess(env, ['doctor'])
  assert.match(untrusted.out, new RegExp(`^FAIL +relay localhost:${port}: .*certificate.*\`ca\``, 'm'))
  const running = await spawnServe(t, { ...env, ...trusting })
  const answer = await fetch(`${running.api}/v1/email`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(validBody()),
  })
  assert.equal(answer.status, 202, await answer.text())
  assert.equal((await first()).secure, true)
})

test('a command reaches a service whose certificate is of an own authority', async (t) => {
  const tokenFile = join(temporaryFolder(t), 'token')
  writeFileSync(tokenFile, newToken(), { mode: 0o600 })
  const env = { POSTERN_URL: await startProxy(t), POSTERN_TOKEN_FILE: tokenFile }
  assert.match((await runProcess(env, ['status'])).err, /certificate/)
  const { err } = await runProcess({ ...env, ...trusting }, ['status'])
  assert.doesNotMatch(err, /certificate/)
  assert.match(err, /503/)
})

/** In front of no service. */
async function startProxy(scope: Scope): Promise<string> {
  const server = createServer(tls, (_, response) => response.writeHead(503).end())
  await new Promise<void>((resolve) => server.listen(0, resolve))
  atEnd(scope, () => new Promise((resolve) => server.close(resolve)))
  return `https://localhost:${(server.address() as AddressInfo).port}`
}
