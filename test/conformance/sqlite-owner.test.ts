/** SQLite alone: commands that another user than the owner of the database file runs. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newSecretKey } from '../../src/store/crypto/key-ring.ts'
import { postern, posternJson, type Variables } from '../support/cli.ts'
import { temporaryFolder } from '../support/temporary.ts'

test('another user than the file’s owner is refused', {
  skip: process.getuid?.() !== 0 && 'skipped: needs root',
}, async (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  const own = { POSTERN_DATABASE_URL: `sqlite:${path}`, POSTERN_SECRET_KEYS: newSecretKey('k1') }
  await posternJson(own, ['migrate'])
  const folder = temporaryFolder(t)
  const file = join(folder, 'backup')
  assert.equal((await postern(own, ['backup', file])).code, 0)
  chownSync(path, 12_345, 12_345)
  const target = 'postgres://user@127.0.0.1:1/postern'
  const isRefused = async (environment: Variables, args: readonly string[]) => {
    const { code, err } = await postern(environment, args)
    assert.equal(code, 1, args.join(' '))
    assert.match(
      err,
      /^postern: the (?:folder of the )?database belongs to user 12345 and this is user 0: run the command [^\n]*\n$/,
    )
  }
  for (const args of [
    ['app', 'list'],
    ['backup', join(folder, 'other')],
    ['restore', file],
    ['copy', '--to', target],
  ])
    await isRefused(own, args)
  // A database that root made in a folder of another user could not be opened by that user's service.
  chownSync(folder, 12_345, 12_345)
  const absent = { ...own, POSTERN_DATABASE_URL: `sqlite:${join(folder, 'new.db')}` }
  for (const args of [['restore', file], ['migrate']]) await isRefused(absent, args)
  assert.match((await postern(absent, ['app', 'list'])).err, /there is no Postern database/)
})

test('the service does not start on a database that it may not write, and says whose it is', {
  skip: process.getuid?.() !== 0 && 'skipped: needs root',
}, async (t) => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'postern.db')
  const own = { POSTERN_DATABASE_URL: `sqlite:${path}`, POSTERN_SECRET_KEYS: newSecretKey('k1') }
  await posternJson(own, ['migrate'])
  chmodSync(path, 0o644)
  chmodSync(folder, 0o777)
  const serve = async (command = 'serve') => {
    const [node = '', program = ''] = [process.execPath, join(import.meta.dirname, '../../bin/postern.js')]
    const env = { ...own, POSTERN_SMTP_URL: 'smtp://127.0.0.1:1', PATH: process.env.PATH }
    const child = spawn(node, [program, command], { env, uid: 12_345, gid: 12_345 })
    const [out, chunks, [code]] = await Promise.all([
      child.stdout.toArray(),
      child.stderr.toArray(),
      once(child, 'exit'),
    ])
    return { code, out: Buffer.concat(out).toString(), err: Buffer.concat(chunks).toString() }
  }
  const { code, err } = await serve()
  assert.equal(code, 1)
  assert.match(
    err,
    /^postern: user 12345 may not write the database .*which belongs to user 0: give it to this user, with chown 12345/,
  )
  chmodSync(path, 0o666)
  chmodSync(folder, 0o755)
  assert.match(
    (await serve()).err,
    /^postern: user 12345 may not write the folder of the database, .*belongs to user 0/,
  )
  rmSync(path)
  assert.match(
    (await serve('doctor')).out,
    /FAIL {2}database: user 12345 may not write the folder .* chown 12345 \S+\n/,
  )
})
