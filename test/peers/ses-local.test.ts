/**
 * An email through aws-ses-v2-local, which takes SES's requests and parses their messages by mailparser. It
 * checks no signature.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { parseRelayUrl } from '../../src/config/relay-url.ts'
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

test('aws-ses-v2-local takes an email, and reads in it what was written', {
  skip: lacking('aws-ses-v2-local'),
}, async (t) => {
  const port = await freePort()
  const child = spawn(process.execPath, [program, '--host', '127.0.0.1', '--port', String(port)])
  atEnd(t, () => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  await eventually(() => said.includes('server running'))
  const endpoint = `http://127.0.0.1:${port}`
  const { relay } = parseRelayUrl(`ses://AKID:secret@eu-west-1?endpoint=${endpoint}`)
  assert.ok(relay)
  const service = await startTestService(t, {
    relays: [{ ...relayTo(port), address: relay.address }],
    settings: {
      from: { name: 'Ärzte, "Söhne" & Co.', address: 'auth@acme.test' },
      replyTo: 'help@acme.test',
    },
  })
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
