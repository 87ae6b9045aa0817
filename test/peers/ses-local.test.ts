/**
 * An email through aws-ses-v2-local, which takes SES's requests and parses their messages by mailparser. It
 * checks no signature.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { parseRelayUrl } from '../../src/config/relay-url.ts'
import { sendJson, startApiServer } from '../support/api-server.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { freePort } from '../support/ports.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const program = toolPath('aws-ses-v2-local')

type Stored = {
  from: string
  replyTo: string[]
  destination: { to: string[] }
  subject: string
  body: { text: string; html: string }
}

async function startSes(t: TestContext): Promise<string> {
  const port = await freePort()
  const child = spawn(process.execPath, [program, '--host', '127.0.0.1', '--port', String(port)])
  atEnd(t, () => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  await eventually(() => said.includes('server running'))
  return `http://127.0.0.1:${port}`
}

async function startService(t: TestContext, endpoint: string, options = '') {
  const { relay } = parseRelayUrl(`ses://AKID:secret@eu-west-1?endpoint=${endpoint}${options}`)
  assert.ok(relay)
  return startTestService(t, {
    relays: [{ ...relayTo(0), address: relay.address }],
    settings: {
      from: { name: 'Ärzte, "Söhne" & Co.', address: 'auth@acme.test' },
      replyTo: 'help@acme.test',
    },
  })
}

test('aws-ses-v2-local takes an email, and reads in it what was written', {
  skip: lacking('aws-ses-v2-local'),
}, async (t) => {
  const endpoint = await startSes(t)
  const service = await startService(t, endpoint)
  const answer = await service.post(validBody({}, service.store.now()))
  assert.equal(answer.status, 202)
  const [email] = await eventually(async () => {
    const { emails } = (await (await fetch(`${endpoint}/store`)).json()) as { emails: Stored[] }
    return emails.length === 1 ? emails : null
  })
  assert.equal(email?.from, '"Ärzte, \\"Söhne\\" & Co." <auth@acme.test>')
  assert.deepEqual([email.destination.to, email.replyTo], [['ada@example.com'], ['help@acme.test']])
  assert.equal(email.subject, 'Sign in to Acme')
  assert.match(email.body.text, /https:\/\/app\.acme\.test\/auth\?token=abc/)
  assert.match(email.body.html, /<a [^>]*href="https:\/\/app\.acme\.test\/auth\?token=abc"/)
})

test('aws-ses-v2-local takes each email with the configuration set that fits the life of its link', {
  skip: lacking('aws-ses-v2-local'),
}, async (t) => {
  const endpoint = await startSes(t)
  const sets: unknown[] = []
  const between = await startApiServer(t, async ({ path, headers, body }, response) => {
    const { ConfigurationSetName } = JSON.parse(body)
    const { 'content-type': type, authorization } = headers
    const own = { 'content-type': type ?? '', authorization: authorization ?? '' }
    const answer = await fetch(endpoint + path, { method: 'POST', headers: own, body: Buffer.from(body, 'latin1') })
    if (answer.status === 200) sets.push(ConfigurationSetName)
    sendJson(response, answer.status, await answer.json())
  })
  const service = await startService(t, between.url, '&set=hour:3600;five:300;quarter:900')
  for (const [n, minutes] of [4, 6, 20, 70].entries()) {
    const expiresAt = new Date(service.store.now() + minutes * 60_000).toISOString()
    const answer = await service.post(validBody({ to: `ada${n}@example.com`, expiresAt }, service.store.now()))
    assert.equal(answer.status, 202)
    await eventually(() => sets.length === n + 1)
  }
  assert.deepEqual(sets, ['five', 'five', 'quarter', 'hour'])
})
