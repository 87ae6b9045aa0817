/** The real `systemd-notify` sends to a socket that a program of the system reads. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { notifySystemd } from '../../src/cli/notify-systemd.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('systemd-notify', 'perl')

/** Prints each datagram; the last one of `systemd-notify` comes with a descriptor, which it closes. */
const reader = `use Socket; socket(my $s, AF_UNIX, SOCK_DGRAM, 0); bind($s, sockaddr_un($ARGV[0])) or die; $| = 1;
  print "listening\\n"; while (defined recv($s, my $text, 999, 0)) { print "$text\\n" }`

async function startReader(t: TestContext) {
  const socket = join(temporaryFolder(t), 'notify')
  const child = spawn(toolPath('perl'), ['-e', reader, socket])
  t.after(() => child.kill())
  const lines: string[] = []
  createInterface(child.stdout).on('line', (line) => line !== 'BARRIER=1' && lines.push(line))
  await eventually(() => lines.shift() === 'listening')
  return { env: { PATH: process.env.PATH, NOTIFY_SOCKET: socket }, lines }
}

const onFault = (text: string) => assert.fail(text)

test('systemd hears that the service is ready, that it works, and that it stops', { skip }, async (t) => {
  const { env, lines } = await startReader(t)
  let asked = 0
  const askStore = async () => {
    asked += 1
    throw new Error('the database is down, and says so')
  }
  const onStop = await notifySystemd({ ...env, WATCHDOG_USEC: '20000' }, { askStore, onFault })
  await eventually(() => lines.filter((line) => line === 'WATCHDOG=1').length >= 2)
  await onStop()
  await eventually(() => lines.includes('STOPPING=1'))
  assert.equal(lines[0], 'READY=1')
  assert.ok(asked >= 2)
})

test('a store that does not answer is asked once, and the watchdog hears nothing', { skip }, async (t) => {
  const { env, lines } = await startReader(t)
  let asked = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  const askStore = () => {
    asked += 1
    return promise
  }
  const onStop = await notifySystemd({ ...env, WATCHDOG_USEC: '20000' }, { askStore, onFault })
  let ticks = 0
  const ticking = setInterval(() => (ticks += 1), 10)
  await eventually(() => asked === 1 && ticks >= 5)
  await onStop()
  resolve()
  await eventually(() => lines.includes('STOPPING=1') && ticks >= 20)
  clearInterval(ticking)
  assert.deepEqual([asked, lines], [1, ['READY=1', 'STOPPING=1']])
})

test('without systemd nothing is sent, and without its program the fault is said', async () => {
  const faults: string[] = []
  const watched = { askStore: () => assert.fail(), onFault: (text: string) => void faults.push(text) }
  await (await notifySystemd({ WATCHDOG_USEC: '1' }, watched))()
  assert.deepEqual(faults, [])
  await (await notifySystemd({ NOTIFY_SOCKET: '/nowhere', PATH: '/nowhere' }, watched))()
  assert.match(faults[0] ?? '', /^cannot notify systemd: .*ENOENT/)
})
