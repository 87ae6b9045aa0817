import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import { newReader } from './reader.ts'
import { readSecretKeys } from './secrets.ts'

// systemd gives 0400, Kubernetes 0440 with a group, a person 0600 or 0640.
const modes: [mode: number, ok: boolean][] = [
  [0o400, true],
  [0o440, true],
  [0o600, true],
  [0o640, true],
  [0o660, false],
  [0o444, false],
  [0o604, false],
  [0o641, false],
]

test('a file of secrets may be read by its owner and its group, and written by its owner', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-secrets-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'keys')
  writeFileSync(file, newSecretKey('k1'))
  for (const [mode, ok] of modes) {
    chmodSync(file, mode)
    const faults: string[] = []
    readSecretKeys(newReader({ POSTERN_SECRET_KEYS: `file:${file}` }, 'serve', faults))
    assert.equal(faults.length === 0, ok, mode.toString(8))
    if (!ok) assert.match(faults.join(), /run chmod 600 on it, or set the mode 0440/)
  }
})

test('a command on a database of its own never uses the ring of dev mode', () => {
  const faults: string[] = []
  const env = { POSTERN_DATABASE_URL: 'sqlite:/var/lib/postern/postern.db' }
  assert.equal(readSecretKeys(newReader(env, 'command', faults)), null)
  assert.match(faults.join('\n'), /^POSTERN_SECRET_KEYS is missing: set the ring that .* was made with/)
})
