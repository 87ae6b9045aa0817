/** The bounce listener's memory while clients send the largest message in the smallest pieces. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { reportMax } from '../../src/domain/bounds.ts'
import { startServe } from '../support/cli.ts'
import { freePort } from '../support/ports.ts'
import { beginData } from '../support/smtp-dialogue.ts'

const bounceAddress = 'bounces@bounce.acme.test'

test('twenty clients that make many small pieces of the largest message take little memory', async (t) => {
  const port = await freePort()
  const { child } = await startServe(t, {
    POSTERN_ROLES: 'reports',
    POSTERN_BOUNCE_LISTEN: `127.0.0.1:${port}`,
    POSTERN_BOUNCE_ADDRESS: bounceAddress,
  })
  const readPeakMiB = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024
  const beforeMiB = readPeakMiB()
  // Each doubled dot ends a piece. The messages stay open, so that all are held at once. As lists of their
  // pieces they took 26 MiB each.
  const clients = await Promise.all(
    Array.from({ length: 20 }, (_, n) => beginData(port, bounceAddress, `127.0.3.${1 + n}`)),
  )
  const text = '..\r\n'.repeat(reportMax / 3 - 100)
  await Promise.all(
    clients.map(({ socket }) => new Promise((resolve) => socket.once('close', resolve).write(text, resolve))),
  )
  const replies = await Promise.all(clients.map(({ say }) => say('.')))
  assert.ok(
    replies.every((reply) => reply.startsWith('250') || reply === 'closed'), // small pieces are over the rate
    replies.join(),
  )
  const grownMiB = readPeakMiB() - beforeMiB
  t.diagnostic(`${Math.round(beforeMiB)} MiB, and ${Math.round(grownMiB)} more`)
  assert.ok(grownMiB < 160, `${grownMiB} MiB more`)
})
