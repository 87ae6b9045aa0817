/** Standard output that cannot be written: the service goes on, says so, and stops on SIGTERM. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, readSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fillDisk, makeSmallDisk } from '../support/block-device.ts'
import { command, postern, spawnServeInto } from '../support/cli.ts'
import { lacking } from '../support/installed.ts'
import { startLoad } from '../support/load.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const root = lacking('mount')

/** Posts until log lines are lost: all mail is delivered meanwhile, and the process says what is wrong. */
async function servesWithoutLog(t: TestContext, stdout: number | 'pipe', under: readonly string[] = []) {
  const relay = await startSmtpServer(t)
  const more = { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`, POSTERN_LOG_LEVEL: 'debug' }
  const server = await spawnServeInto(t, stdout, more, under)
  const load = startLoad(t, { api: () => server.api, key: server.key, clients: 8 })
  const readLost = async () => {
    const text = await (await fetch(`${server.ops}/metrics`)).text()
    return Number(/^postern_log_lines_lost_total (\d+)$/m.exec(text)?.[1])
  }
  await eventually(async () => (await readLost()) > 0, 120_000)
  const status = await eventually(async () => {
    const { out } = await postern(server.env, ['status'])
    return out.includes('has not been able to write its log') ? out : null
  })
  await load.stop()
  assert.equal((await fetch(`${server.ops}/livez`)).status, 200)
  await eventually(() => relay.received.length >= load.acknowledged.size, 60_000)
  assert.deepEqual([...load.statuses.keys()], [202])
  assert.equal(server.errors().match(/log lines cannot be written to standard output/g)?.length, 1)
  return { ...server, status, readLost }
}

async function stops({ child }: { readonly child: import('node:child_process').ChildProcess }): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
}

/** Each line is whole, and the last ones say how many are missing. */
function assertResumed(text: string, lost: number): void {
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const resumed = lines.find(({ msg }) => msg.startsWith('log lines can be written again'))
  assert.equal(resumed?.lost, lost)
}

test('row 53: the disk of the log is full: mail goes on, and the log resumes without a torn line', {
  skip: root,
}, async (t) => {
  const folder = makeSmallDisk(t, 1024 * 1024)
  const [file, balloon] = [join(folder, 'log'), join(folder, 'balloon')]
  const stdout = openSync(file, 'a')
  fillDisk(balloon)
  const server = await servesWithoutLog(t, stdout)
  assert.match(server.status, /no space left on device/)
  rmSync(balloon)
  await eventually(() => readFileSync(file, 'utf8').includes('log lines can be written again'))
  const lost = await server.readLost() // until here a line may be lost
  await eventually(async () => !(await postern(server.env, ['status'])).out.includes('write its log'))
  await stops(server)
  assertResumed(readFileSync(file, 'utf8'), lost)
})

test('row 53: the disk of the log stays full: SIGTERM still stops the process', { skip: root }, async (t) => {
  const folder = makeSmallDisk(t, 64 * 1024)
  await stops(await servesWithoutLog(t, openSync(join(folder, 'log'), 'a')))
})

test('row 53: the log reaches the largest size of a file', async (t) => {
  const file = join(temporaryFolder(t), 'log')
  writeFileSync(file, '')
  const largest = 2 ** 40 // a sparse file: more than the database reaches
  truncateSync(file, largest)
  const limited = ['prlimit', `--fsize=${largest}`]
  const server = await servesWithoutLog(t, openSync(file, 'a'), limited)
  assert.match(server.status, /file too large/)
  await stops(server)
})

test('row 53: the reader of the log stops reading, then reads on; then it goes away', async (t) => {
  const server = await servesWithoutLog(t, 'pipe')
  const { stdout } = server.child
  assert.ok(stdout !== null)
  let text = ''
  stdout.on('data', (chunk) => {
    text += chunk
  })
  await eventually(() => text.includes('log lines can be written again'))
  assertResumed(text.slice(0, text.lastIndexOf('\n')), await server.readLost()) // until here a line may be lost
  stdout.destroy()
  assert.equal((await fetch(`${server.ops}/livez`)).status, 200)
  await stops(server)
})

test('row 53: the reader of the log has stopped: SIGTERM still stops the process', async (t) => {
  await stops(await servesWithoutLog(t, 'pipe'))
})

test('row 53: a named pipe whose reader stops: lines that are longer than it takes at once stay whole', async (t) => {
  const pipe = join(temporaryFolder(t), 'pipe')
  execFileSync('mkfifo', [pipe])
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  const server = await servesWithoutLog(t, openSync(pipe, 'w'))
  let text = ''
  const chunk = Buffer.alloc(5000)
  await eventually(() => {
    try {
      text += chunk.toString('utf8', 0, readSync(reader, chunk))
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'EAGAIN')
    }
    return text.includes('log lines can be written again')
  })
  assertResumed(text.slice(0, text.lastIndexOf('\n')), await server.readLost()) // until here a line may be lost
  closeSync(reader)
  await stops(server)
})

test('row 53: standard output is full from the start', async (t) => {
  await stops(await servesWithoutLog(t, openSync('/dev/full', 'w')))
})

test('a command whose reader has gone ends in silence', () => {
  const line = [...command, 'email', '--help'].map((word) => `'${word}'`).join(' ')
  const { stderr } = spawnSync('bash', ['-c', `${line} | head -c 0; sleep 0.1`])
  assert.equal(String(stderr), '')
})

test('a command whose output cannot be written fails, and says so', () => {
  const [file = '', ...args] = command
  const full = openSync('/dev/full', 'w')
  for (const line of [['secret', 'new'], ['--help'], ['--version']]) {
    const { status, stderr } = spawnSync(file, [...args, ...line], { stdio: ['ignore', full, 'pipe'] })
    assert.deepEqual([status, /no space left on device/.test(String(stderr))], [1, true], line.join(' '))
  }
})
