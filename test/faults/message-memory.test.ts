/** The memory of message forms: bounded, however many apps write in however many languages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MessageComposer, type MessageInput } from '../../src/delivery/message/compose-message.ts'
import { defaultSettings } from '../../src/domain/app/settings.ts'
import type { Reference } from '../../src/domain/delivery/reference.ts'
import { type AppId, newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { languageTags } from '../../src/templates/locales/language-files.ts'

const settings = { ...defaultSettings, name: 'Acme', from: { name: 'Acme', address: 'auth@acme.test' } }
const newInput = (id: AppId, locale: string): MessageInput => ({
  claim: {
    ...{ type: 'magic_link', acceptedAt: 0, ageMs: 0, expiresAt: 900_000 },
    content: {
      ...{ to: 'ana@example.com' as EmailAddress, messageIdDomain: 'acme.test', locale },
      url: 'https://app.acme.test/auth?token=abc',
    },
  },
  reference: 'em_01m7x4pm530000dj4zwn0hsje3.0123456789' as Reference,
  app: { id, version: 1, slug: 'acme', settings },
  lifeLeftMs: 900_000,
})

test('forms of 100 apps in every language take at most 17 MB, whether each is met once or more often', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // Forms are strings; the buffers of messages are freed some time after a collection.
  const measure = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const apps = Array.from({ length: 100 }, () => newId('app', 0))
  const composeAll = (composer: MessageComposer, times: number) => {
    for (const id of apps)
      for (const locale of languageTags) for (let n = 0; n < times; n++) composer.compose(newInput(id, locale))
  }
  // All languages are read, and the code is compiled.
  composeAll(new MessageComposer(), 2)
  const composer = new MessageComposer()
  const before = measure()
  composeAll(composer, 1)
  const once = measure() - before
  composeAll(composer, 3)
  const often = measure() - before
  assert.ok(once < 1e6, `${once} bytes of kinds that were met once`)
  assert.ok(often > 5e6 && often <= 17e6, `${often} bytes of forms`)
  composer.compose(newInput(newId('app', 0), 'en')) // it is still in use
})
