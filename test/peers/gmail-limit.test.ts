/**
 * The daily limit of Gmail, `550 5.4.5`, from a relay whose name is smtp.gmail.com: in a mount namespace, its
 * name leads to loopback. The same words from another name may be a receiver's.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newAcme, postern, serveEnvironment, spawnServe } from '../support/cli.ts'
import { lacking } from '../support/installed.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const hosts = ['smtp.gmail.com', 'smtp.acme.dev']

/** A relay that has used up its limit, under both names, and the start of a command that finds it there. */
async function startLimited(t: Scope) {
  const folder = temporaryFolder(t)
  const file = (name: string) => join(folder, name)
  const names = hosts.map((host) => `DNS:${host}`).join(',')
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=relay'],
      ...['-addext', `subjectAltName=${names}`, '-keyout', file('key.pem'), '-out', file('cert.pem')],
    ],
    { stdio: 'ignore' },
  )
  const { port } = await startSmtpServer(t, {
    secure: true,
    cert: readFileSync(file('cert.pem')),
    key: readFileSync(file('key.pem')),
    onMailFrom: (_address, _session, done) =>
      done(Object.assign(new Error('5.4.5 Daily user sending limit exceeded'), { responseCode: 550 })),
  })
  writeFileSync(file('hosts'), `127.0.0.1 localhost ${hosts.join(' ')}\n`)
  writeFileSync(file('resolv.conf'), 'nameserver 127.0.0.1\n') // where nobody answers
  const mount = 'mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/resolv.conf" /etc/resolv.conf'
  return {
    under: ['unshare', '--mount', 'sh', '-c', `${mount} && exec "$@"`, folder],
    urlOf: (host: string) => `smtps://${host}:${port}?ca=${file('cert.pem')}&reserved=send`,
  }
}

const skip = lacking('unshare', 'openssl')

for (const [host, isKnown] of [
  ['smtp.gmail.com', true],
  ['smtp.acme.dev', false],
] as const)
  test(`550 5.4.5 from ${host}: the second relay sends the email, and the first is ${isKnown ? 'down at once' : 'asked again'}`, {
    skip,
  }, async (t) => {
    const limited = await startLimited(t)
    const second = await startSmtpServer(t)
    const relays = `${limited.urlOf(host)} smtp://127.0.0.1:${second.port}`
    const env = { ...(await serveEnvironment(t)), POSTERN_SMTP_URL: relays }
    const headers = { authorization: `Bearer ${await newAcme(env)}` }
    const server = await spawnServe(t, env, { under: limited.under })
    const answer = await send(`${server.api}/v1/email`, JSON.stringify(validBody()), headers)
    assert.equal(answer.status, 202)
    type Email = { state: string; attempts: number; trail: { relay: string }[] }
    const email = await eventually(async () => {
      const { out } = await postern(env, ['email', 'show', answer.headers.get('email-id') ?? '', '--json'])
      const found = JSON.parse(out) as Email
      return found.state === 'delivered' ? found : null
    })
    assert.deepEqual([email.attempts, email.trail.length, second.received.length], [1, 1, 1])
    assert.equal(/550 5\.4\.5.*the relay is unavailable/.test(server.output()), isKnown)
  })
