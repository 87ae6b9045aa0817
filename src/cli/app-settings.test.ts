import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseFrom } from './app-settings.ts'

test('a sender’s name may have quotes, as text or as mail writes them', () => {
  for (const [text, name] of [
    ['Acme <auth@acme.test>', 'Acme'],
    ['"Acme, Inc." <auth@acme.test>', 'Acme, Inc.'],
    ['Acme "Pro" <auth@acme.test>', 'Acme "Pro"'],
    ['"Acme \\"Pro\\"" <auth@acme.test>', 'Acme "Pro"'],
    ['"Acme" Pro <auth@acme.test>', '"Acme" Pro'],
    ['"A\\\\B" <auth@acme.test> ', 'A\\B'],
  ] as const)
    assert.deepEqual(parseFrom(text), { name, address: 'auth@acme.test' }, text)
  for (const text of ['auth@acme.test', '<auth@acme.test>', '"" <auth@acme.test>', 'A <b> <auth@acme.test>', ''])
    assert.throws(() => parseFrom(text), /--from must look like/, text)
})
