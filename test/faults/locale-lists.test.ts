/** Languages that nobody has heard of, in great number: they change no answer and reach no log. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { languageTags } from '../../src/templates/locales/language-files.ts'
import { startTestService, validBody } from '../support/service.ts'

/** Tags and lists, real and not, each with a mark in a private subtag. */
let serial = 0
const mark = 'x-zq7mark'
const wishes = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom(...languageTags, 'tlh', 'und', '*', 'de_AT.UTF-8', 'sr-Latn-RS', 'i-klingon'),
        fc.stringMatching(/^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,3}$/),
        fc.string({ maxLength: 20 }),
      ),
      fc.constantFrom('', `-${mark}`, `-${mark}-abc`, ` ${mark}`),
      fc.constantFrom('', ';q=0.5', ';q=0', ';q=1.000', '; q=0.1', ';q=9', ';level=1'),
    ),
    { minLength: 1, maxLength: 14 },
  )
  .map((ranges) => `${ranges.map((range) => range.join('')).join(', ')},${mark}`)

test('10,000 tags and lists are accepted as a request without one is, and none is in a log', async (t) => {
  const { key, log, store, apiUrl, urls } = await startTestService(t, { roles: new Set(['api']) })
  const ask = async (change: Record<string, unknown>) => {
    const body = JSON.stringify(validBody({ to: `ask${serial++}@example.com`, ...change }, store.now()))
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(apiUrl, { method: 'POST', headers, body })
    const names = [...answer.headers.keys()].filter((name) => name !== 'email-language')
    const language = answer.headers.get('email-language')
    return { language, rest: { status: answer.status, text: await answer.text(), names } }
  }
  const without = await ask({})
  assert.deepEqual([without.language, without.rest.status], [null, 202])
  const lists = fc.sample(wishes, 10_000).values()
  const askInTurn = async () => {
    for (const locale of lists) {
      const { language, rest } = await ask({ locale })
      assert.deepEqual(rest, without.rest, locale)
      assert.ok(languageTags.includes(language ?? ''), locale)
    }
  }
  await Promise.all(Array.from({ length: 100 }, askInTurn))
  const metrics = await (await fetch(`${urls.ops}/metrics`)).text()
  assert.ok(!(log.join('') + metrics).includes(mark))
})
