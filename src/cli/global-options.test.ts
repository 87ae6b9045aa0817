import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/support/temporary.ts'
import { readGlobalOptions } from './global-options.ts'
import { UsageError } from './output.ts'

test('global options may stand anywhere, and win over the environment', () => {
  const env = { POSTERN_URL: 'https://old.test', POSTERN_LOG_LEVEL: 'error' }
  const line = ['key', '--url=https://new.test', 'list', '--json', 'acme', '--token-file', '/t']
  assert.deepEqual(readGlobalOptions(line, env), {
    args: ['key', 'list', 'acme'],
    env: { POSTERN_URL: 'https://new.test', POSTERN_LOG_LEVEL: 'error', POSTERN_TOKEN_FILE: '/t' },
    json: true,
  })
  assert.deepEqual(readGlobalOptions(['status'], env), { args: ['status'], env, json: false })
})

test('an option without its value is refused, and so is a file that cannot be read', () => {
  const refused = (...line: string[]) =>
    assert.throws(
      () => readGlobalOptions(line, {}),
      (error) => error instanceof UsageError,
    )
  for (const name of ['--url', '--token-file', '--env-file']) {
    refused('status', name)
    refused('status', name, '')
    refused('status', `${name}=`)
    refused('status', name, '--json')
    refused(name, '--other', 'status')
  }
  refused('--env-file', '/nowhere/postern.env', 'status')
})

/** An env file with a secret, and the reading of it. */
function newEnvFile(t: Parameters<typeof temporaryFolder>[0]) {
  const folder = join(temporaryFolder(t), 'postern')
  mkdirSync(folder)
  const file = join(folder, 'postern.env')
  writeFileSync(file, 'POSTERN_SECRET_KEYS=k1:c2VjcmV0', { mode: 0o600 })
  const read = (path = file) => readGlobalOptions(['--env-file', path, 'status'], {}).env
  const refused = (reason: RegExp, path = file) =>
    assert.throws(
      () => read(path),
      (error: Error) => error instanceof UsageError && reason.test(error.message) && !/c2Vj/.test(error.message),
    )
  return { folder, file, read, refused }
}

test('an env file that others can read or write is refused, as a file of secrets is', (t) => {
  const { file, read, refused } = newEnvFile(t)
  for (const mode of [0o600, 0o640, 0o400, 0o440]) {
    chmodSync(file, mode)
    assert.deepEqual(read(), { POSTERN_SECRET_KEYS: 'k1:c2VjcmV0' }, mode.toString(8))
  }
  const link = join(temporaryFolder(t), 'link')
  symlinkSync(file, link)
  for (const mode of [0o644, 0o660, 0o666, 0o604, 0o602]) {
    chmodSync(file, mode)
    refused(/^--env-file: others may read .*chmod 600/)
    refused(/^--env-file: others may read .*chmod 600/, link)
  }
})

test('an env file in a folder that others can write to is refused, but not in one as /tmp is', (t) => {
  const { folder, file, read, refused } = newEnvFile(t)
  const link = join(temporaryFolder(t), 'link')
  symlinkSync(file, link)
  for (const [mode, isSafe] of [
    [0o777, false],
    [0o1777, true],
    [0o775, true],
  ] as const) {
    chmodSync(folder, mode)
    for (const path of [file, link])
      if (isSafe) assert.ok(read(path))
      else refused(/others may replace .*chmod o-w/, path)
  }
})

test('a mark at the beginning of an env file is no part of its first name', (t) => {
  const { file, read } = newEnvFile(t)
  writeFileSync(file, '\ufeffPOSTERN_SMTP_NAME=a.test\nPOSTERN_URL="x#y"\n# POSTERN_ROLES=a#b\nA=b#c\n')
  assert.deepEqual(read(), { POSTERN_SMTP_NAME: 'a.test', POSTERN_URL: 'x#y' })
})

test('a value that a # would cut is refused, and not shown', (t) => {
  const { file, refused } = newEnvFile(t)
  for (const line of [
    'POSTERN_SMTP_URL=smtp://user:c2Vj#34@host',
    'export POSTERN_A = c2Vj#',
    'X=1\nPOSTERN_B=c2Vj#x',
  ]) {
    writeFileSync(file, line)
    refused(/^--env-file, line \d: POSTERN_\w+ has a # in its value, .*put the value in quotes$/)
  }
})
