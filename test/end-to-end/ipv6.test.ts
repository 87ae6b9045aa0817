/** A machine that reaches everything by IPv6: every listener and the relay at `::1`. */
import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { newAcme, postern, serveEnvironment, spawnServe } from '../support/cli.ts'
import { freePort } from '../support/ports.ts'
import { validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'

const hasIpv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === '::1'))
const skip = !hasIpv6 && 'skipped: this machine has no address ::1'

test('with listeners and a relay at IPv6 addresses, mail is sent, and each address is written as URLs have it', {
  skip,
}, async (t) => {
  const { port, first } = await startSmtpServer(t, {}, '::1')
  const bounces = await freePort()
  const env = {
    ...(await serveEnvironment(t)),
    POSTERN_API_LISTEN: '[::1]:0',
    POSTERN_OPS_LISTEN: '[::1]:0',
    POSTERN_CONSOLE_LISTEN: '[::1]:0',
    POSTERN_BOUNCE_LISTEN: `[::1]:${bounces}`,
    POSTERN_BOUNCE_ADDRESS: 'bounce@acme.test',
    POSTERN_SMTP_URL: `smtp://[::1]:${port}`,
  }
  const key = await newAcme(env)
  const running = await spawnServe(t, env)
  for (const url of [running.api, running.ops, running.console]) assert.equal(new URL(url).hostname, '[::1]')
  const answer = await fetch(`${running.api}/v1/email`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(validBody()),
  })
  assert.equal(answer.status, 202, await answer.text())
  assert.deepEqual((await first()).to, ['ada@example.com'])
  const { out } = await postern(env, ['doctor'])
  assert.match(out, /^ok +api listener: \[::1\]:0 is free$/m)
  assert.match(out, new RegExp(`^ok +relay \\[::1\\]:${port}: `, 'm'))
  assert.match(out, new RegExp(`^ok +bounces: .*\\[::1\\]:${bounces}`, 'm'))
})
