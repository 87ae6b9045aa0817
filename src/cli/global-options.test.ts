import assert from 'node:assert/strict'
import { test } from 'node:test'
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
