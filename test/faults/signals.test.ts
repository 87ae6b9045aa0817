/** Signals that mean something else to other programs, and a process that has few file descriptors. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { command, newAcme, postern, serveEnvironment, spawnServe, spawnServeInto, startServe } from '../support/cli.ts'
import { lacking } from '../support/installed.ts'
import { startLoad } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGHUP'] as const)
  test(`row 56: ${signal} without a terminal, as from log rotation, changes nothing`, async (t) => {
    const relay = await startSmtpServer(t)
    const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
    const load = startLoad(t, { api: () => server.api, key: server.key, clients: 2, each: 50 })
    server.child.kill(signal)
    await load.done
    assert.equal(load.acknowledged.size, 100)
    await eventually(() => relay.received.length === 100)
    assert.doesNotMatch(server.output(), /[Dd]ebugger/)
    const ended = once(server.child, 'exit')
    server.child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })

test('row 56: the hangup of its terminal stops the process as SIGTERM does', {
  skip: lacking('script'),
}, async (t) => {
  const env = await serveEnvironment(t)
  const ops = `127.0.0.1:${await freePort()}`
  const variables = { ...env, POSTERN_SMTP_URL: 'smtp://127.0.0.1:1', POSTERN_OPS_LISTEN: ops }
  const line = [...command, 'serve'].map((word) => `'${word}'`).join(' ')
  const terminal = spawn('script', ['-qec', `exec ${line}`, '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', ...variables },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  atEnd(t, () => terminal.kill('SIGKILL'))
  let output = ''
  terminal.stdout.on('data', (chunk) => {
    output += chunk
  })
  await eventually(() => output.includes('is ready'))
  const ended = once(terminal, 'close')
  const { pid } = terminal
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0])
  process.kill(child, 'SIGHUP')
  const [code] = await ended
  assert.equal(code, 0)
  assert.match(output, /stopped; queued emails are sent/)
})

test('row 57: few file descriptors: requests may be refused, mail that was accepted is sent, and it is no bug', {
  skip: lacking('prlimit'),
}, async (t) => {
  const relay = await startSmtpServer(t)
  const variables = { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` }
  const server = await spawnServeInto(t, 'pipe', variables, ['prlimit', '--nofile=96:96'])
  let output = ''
  server.child.stdout?.on('data', (chunk) => {
    output += chunk
  })
  const { hostname, port } = new URL(server.api)
  const idle: Socket[] = Array.from({ length: 120 }, () => connect(Number(port), hostname).on('error', () => {}))
  atEnd(t, () => idle.forEach((socket) => void socket.destroy()))
  const load = startLoad(t, { api: () => server.api, key: server.key, clients: 20, each: 20 })
  await load.done
  for (const socket of idle) socket.destroy()
  const more = startLoad(t, { api: () => server.api, key: server.key, clients: 2, each: 10, insist: true })
  await more.done
  await eventually(() => relay.received.length >= load.acknowledged.size + more.acknowledged.size)
  assert.doesNotMatch(output, /a bug/)
})

test('an address that cannot be listened on is one line with advice, at the start and in the doctor', async (t) => {
  const env = { ...(await serveEnvironment(t)), POSTERN_SMTP_URL: 'smtp://127.0.0.1:1' }
  await newAcme(env)
  const taken = (await startSmtpServer(t)).port
  const faults: readonly [setting: string, value: string, says: RegExp][] = [
    ['API', 'postern.invalid:4020', /POSTERN_API_LISTEN: .*does not resolve.*write an IP address/],
    ['API', '*:4020', /POSTERN_API_LISTEN must look like .* write 0\.0\.0\.0 or \[::\]/],
    ['API', '192.0.2.7:4020', /POSTERN_API_LISTEN: 192\.0\.2\.7:4020 is no address of this machine/],
    ['OPS', `127.0.0.1:${taken}`, /POSTERN_OPS_LISTEN: .* is in use, perhaps by another Postern/],
    ['CONSOLE', '[2001:db8::1]:4022', /POSTERN_CONSOLE_LISTEN: \[2001:db8::1\]:4022 is/],
  ]
  for (const [name, value, says] of faults) {
    const variables = { ...env, [`POSTERN_${name}_LISTEN`]: value }
    await assert.rejects(spawnServe(t, variables), (error: Error) => {
      assert.match(error.message, says)
      assert.doesNotMatch(error.message, /\n\s+at /)
      return true
    })
    assert.match((await postern(variables, ['doctor'])).out, new RegExp(`FAIL .*${says.source}`))
  }
  const other = (await startSmtpServer(t)).port
  const both = { ...env, POSTERN_OPS_LISTEN: `127.0.0.1:${taken}`, POSTERN_API_LISTEN: `127.0.0.1:${other}` }
  await assert.rejects(spawnServe(t, both), /POSTERN_OPS_LISTEN: .* is in use[\s\S]*POSTERN_API_LISTEN: .* is in use/)
  const same = { ...env, POSTERN_API_LISTEN: '0.0.0.0:4920', POSTERN_OPS_LISTEN: '127.0.0.1:4920' }
  const shared = /POSTERN_OPS_LISTEN and POSTERN_API_LISTEN have the same port, 4920/
  await assert.rejects(spawnServe(t, same), shared)
  assert.match((await postern(same, ['doctor'])).out, shared)
})
