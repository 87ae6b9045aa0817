import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSlug, slugFrom } from './app.ts'

for (const slug of ['a', '7', 'acme', 'blue-team', 'a1-b2', 'my-app-1', 'a'.repeat(40)]) {
  test(`the slug "${slug}" is taken`, () => assert.deepEqual(parseSlug(slug), { ok: true, value: slug }))
}

for (const slug of ['', '-a', 'a-', '-', 'A', 'a_b', 'a b', 'é', 'a'.repeat(41), 'app-1', 'a\n']) {
  test(`the slug ${JSON.stringify(slug)} is refused`, () => {
    const parsed = parseSlug(slug)
    assert.deepEqual(parsed.ok ? [] : parsed.issues.map(({ field, code }) => [field, code]), [
      ['slug', 'malformed_slug'],
    ])
  })
}

test('a slug is made from a name', () => {
  assert.equal(slugFrom('Blue Team'), 'blue-team')
  assert.equal(slugFrom('  Crème -- Brûlée!  '), 'creme-brulee')
  assert.equal(slugFrom(`${'x'.repeat(39)} y`), 'x'.repeat(39))
  assert.equal(slugFrom('x'.repeat(50)), 'x'.repeat(40))
  assert.equal(slugFrom('ﬁne'), 'fine')
  assert.equal(slugFrom('日本'), null)
})
