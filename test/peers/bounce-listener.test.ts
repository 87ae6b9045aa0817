/** Reports that a real Postfix or fetchmail hands to the bounce listener, or to `postern report read`. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { BounceListener } from '../../src/reports/bounce-listener.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { command, newAcme, serveEnvironment, serveHere } from '../support/cli.ts'
import { startMailbox } from '../support/dovecot.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { startPostfix } from '../support/postfix.ts'
import { writeReport } from '../support/reports.ts'
import { relayTo, send, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { handReport } from '../support/smtp-dialogue.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const bounceAddress = 'bounces@bounce.acme.test' as EmailAddress

/** A service that delivers, and a bounce listener whose store records nothing until it `isUp`. */
async function start(t: Scope) {
  const relay = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(relay.port)], bounceAddress })
  const { store } = service
  const state = { isUp: false, refused: 0 }
  const recordReport: typeof store.recordReport = async (reports) => {
    if (state.isUp) return store.recordReport(reports)
    state.refused += 1
    throw new StoreUnavailable('down')
  }
  const listener = new BounceListener(
    { store: { ...store, recordReport }, emit: () => {}, sealRecipient: () => '' },
    { address: { host: '127.0.0.1', port: 0 }, tls: null, bounceAddress },
  )
  t.after(() => listener.close())
  const port = Number(new URL(await listener.listen()).port)
  const deliver = async (to: string) => {
    const id = ((await service.post(validBody({ to }))).headers.get('email-id') ?? '') as EmailId
    const { from } = await eventually(() => relay.received.find(({ raw }) => raw.includes(id)))
    await eventually(async () => (await store.findEmail(id))?.state === 'delivered')
    return { id, report: writeReport({ to: from, recipient: to }), sender: from }
  }
  const readTrail = async (id: EmailId) => (await store.findEmail(id))?.trail.map(({ outcome }) => outcome)
  return { deliver, port, readTrail, state }
}

test('Postfix keeps reports while the store does not answer, and each is recorded once afterwards', {
  skip: lacking('postfix'),
}, async (t) => {
  const { deliver, port, readTrail, state } = await start(t)
  const postfix = await startPostfix(t, port, {
    transport_maps: `inline:{bounce.acme.test=smtp:[127.0.0.1]:${port}}`,
  })
  const emails = await Promise.all(Array.from({ length: 20 }, (_, n) => deliver(`person${n}@example.com`)))
  for (const { report, sender } of emails) assert.match(await handReport(postfix.port, { to: sender, report }), /^250 /)
  await eventually(() => state.refused >= emails.length, 60_000)
  for (const { id } of emails) assert.deepEqual(await readTrail(id), ['delivered'])
  state.isUp = true
  for (const { id } of emails) {
    const trail = await eventually(async () => {
      postfix.flush()
      const found = await readTrail(id)
      return found !== undefined && found.length > 1 ? found : null
    }, 60_000)
    assert.deepEqual(trail, ['delivered', 'bounced'])
  }
})

/** Reads a mailbox once. `then` says where its mail goes, as in `.fetchmailrc`. */
async function fetchMail(t: Scope, port: number, then: string, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const folder = temporaryFolder(t)
  const rc = join(folder, 'fetchmailrc')
  const poll = `poll 127.0.0.1 service ${port} protocol imap auth password`
  writeFileSync(rc, `${poll}\nusername "bounces" password "secret" sslproto ''\n${then}\n`, { mode: 0o600 })
  const args = ['--fetchmailrc', rc, '--pidfile', join(folder, 'pid'), '--nodetach', '--nosyslog']
  const child = spawn(toolPath('fetchmail'), args, { env: { PATH: process.env.PATH, HOME: folder, ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = await once(child, 'close')
  assert.ok(code === 0, `fetchmail ended with ${code}: ${output}`)
}

const away = (to: string) => `Return-Path: <>\nTo: ${to}\nSubject: Out of office\n\nI am away.\n`
const skip = lacking('dovecot', 'dovecot-imap', 'fetchmail')

test('fetchmail hands a mailbox to the listener, and leaves in it what the listener cannot record', {
  skip,
}, async (t) => {
  const { deliver, port, readTrail, state } = await start(t)
  const mailbox = await startMailbox(t)
  const email = await deliver('ada@example.com')
  mailbox.put(email.report)
  mailbox.put(away(email.sender))
  const then = `smtphost "127.0.0.1/${port}" smtpname "${bounceAddress}"`
  await fetchMail(t, mailbox.port, then)
  assert.equal(mailbox.count(), 1)
  assert.equal(state.refused, 1)
  state.isUp = true
  await fetchMail(t, mailbox.port, then)
  assert.equal(mailbox.count(), 0)
  assert.deepEqual(await readTrail(email.id), ['delivered', 'bounced'])
})

test('fetchmail hands a mailbox to `postern report read`, and leaves in it a report that may count later', {
  skip,
}, async (t) => {
  const relay = await startSmtpServer(t)
  const env = { ...(await serveEnvironment(t)), POSTERN_ROLES: 'api' }
  const headers = { authorization: `Bearer ${await newAcme(env)}` }
  const { store, urls } = await serveHere(t, env)
  const answer = await send(`${urls.api}/v1/email`, JSON.stringify(validBody()), headers)
  const id = (answer.headers.get('email-id') ?? '') as EmailId
  const sender = `bounces+${store.makeReference(id)}@bounce.acme.test`
  const mailbox = await startMailbox(t)
  // Only the field that the mailbox's own server wrote has the reference.
  mailbox.put(`Delivered-To: ${sender}\n${writeReport({ to: 'x@acme.test', recipient: 'ada@example.com' })}`)
  const run = () => fetchMail(t, mailbox.port, `mda "${command.join(' ')} report read"`, env as NodeJS.ProcessEnv)
  await run()
  assert.equal(mailbox.count(), 1)
  await serveHere(t, { ...env, POSTERN_ROLES: 'worker', POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  await eventually(async () => (await store.findEmail(id))?.state === 'delivered')
  await run()
  assert.equal(mailbox.count(), 0)
  assert.equal((await store.findEmail(id))?.state, 'bounced')
})
