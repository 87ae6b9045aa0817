/** Emails of other software: which of them a rule finds, and its link. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AuthMail, authMails, compose } from '../../test/support/auth-mails.ts'
import { findSystem } from '../domain/auth-hooks/auth-hooks.ts'
import { mailBytesMax, readMail } from './read-mail.ts'

async function read(mail: AuthMail, bytes?: Buffer, settings = {}) {
  const submitted = await readMail(bytes ?? (await compose(mail)), 'ada@acme.test')
  assert.ok(submitted.ok, JSON.stringify(submitted))
  const system = findSystem(mail.system)
  assert.ok(system, mail.system)
  const messages = system.read(submitted.value, { slug: 'acme', settings })
  return messages.ok ? messages.value[0] : messages.issues.map(({ code, message }) => ({ code, message }))[0]
}

test('each email of the corpus is the right one, with the right link', async () => {
  assert.ok(authMails.length >= 50)
  for (const mail of authMails)
    for (const textEncoding of ['quoted-printable', 'base64'] as const) {
      const found = await read(mail, await compose(mail, { textEncoding }))
      assert.ok(found && 'kind' in found, `${mail.link}: ${JSON.stringify(found)}`)
      assert.deepEqual([found.kind, found.link ?? found.original], [mail.kind, mail.link])
    }
})

test('a message that is too large, or nested too deeply, is refused before its links are read', async () => {
  const [mail] = authMails
  assert.ok(mail)
  const small = await compose(mail)
  const codes = await Promise.all(
    [
      Buffer.concat([small, Buffer.alloc(mailBytesMax, 'a')]),
      Buffer.concat([small, Buffer.alloc(20_000, '\n')]),
      Buffer.from(`X: ${'a'.repeat(40_000)}\r\n\r\nhello`),
      Buffer.from(
        Array.from({ length: 30 }, (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`).join(
          '',
        ),
      ),
    ].map(async (bytes) => {
      const result = await readMail(bytes, 'ada@acme.test')
      return result.ok ? 'read' : result.issues[0]?.code
    }),
  )
  assert.deepEqual(codes, ['too_large', 'too_many_lines', 'malformed', 'malformed'])
})
