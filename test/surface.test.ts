/** Nothing that users rely on goes away between two releases without a word in the changelog. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { findBreaks, listSurface, readLastSurface } from '../scripts/surface.ts'

const now = listSurface()

/** The entry of the changelog for the version that is being made. */
const [, entry = ''] = readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8').split(/^## /m)

test('the changelog names each line of the last release that no longer holds', () => {
  const { version, lines } = readLastSurface()
  const silent = findBreaks(lines, now).filter((line) => !entry.includes(`\`${line}\``))
  assert.deepEqual(silent, [], `since ${version}; name each in the changelog, as code`)
})

const kinds: readonly (readonly [string, string])[] = [
  ['a field of the email API', 'schema email.EmailRequest.organisationName: string'],
  ['a value of a field', 'schema email.EmailRequest.type = password_reset'],
  ['a status', 'POST /v1/email 429: Error'],
  ['a field of the management API', 'schema management.App.allowedUrls: array'],
  ['an operation', 'DELETE /v1/tokens/{token}'],
  ['a command', 'postern key revoke'],
  ['an option', 'postern key create --name <name>'],
  ['a variable', 'variable POSTERN_SMTP_URL'],
  ['a metric', 'metric postern_requests_total counter {source, status, code}'],
  ['a webhook', 'webhook email.bounced'],
  ['a refusal', 'refusal url_not_allowed 403'],
  ['an export of the client', 'client ./better-auth betterAuthEmail'],
  ['a field of every answer', 'schema management.Email.attempts always'],
]
for (const [kind, line] of kinds)
  test(`${kind} that goes is noticed: ${line}`, () => {
    assert.ok(now.includes(line), 'it is there today')
    assert.deepEqual(
      findBreaks(
        now,
        now.filter((each) => each !== line),
      ),
      [line],
    )
  })

test('a bound that is new or other than before is noticed, and one that goes is not', () => {
  const bound = 'needs POST /v1/email body.to:maxLength=254'
  assert.ok(now.includes(bound), 'it is there today')
  const others = now.filter((line) => line !== bound)
  const tighter = bound.replace('254', '99')
  assert.deepEqual(findBreaks(others, now), [bound])
  assert.deepEqual(findBreaks(now, [...others, tighter]), [tighter])
  assert.deepEqual(findBreaks(now, others), [])
})

test('what is new breaks nothing, unless a caller of the last release must give it', () => {
  const old = ['POST /v1/x', 'POST /v1/x body.a: string', 'needs POST /v1/x body.a']
  const more = ['POST /v1/y', 'needs POST /v1/y body.b', 'POST /v1/x body.b: string']
  assert.deepEqual(findBreaks(old, [...old, ...more]), [])
  assert.deepEqual(findBreaks(old, [...old, 'needs POST /v1/x body.b']), ['needs POST /v1/x body.b'])
  const optional = ['POST /v1/x body.c: string', 'needs POST /v1/x body.c:maxLength=9']
  assert.deepEqual(findBreaks(old, [...old, ...optional]), [], 'the bound of a field that is new')
  const bound = 'needs POST /v1/x body.a:maxLength=9'
  assert.deepEqual(findBreaks(old, [...old, 'POST /v1/x body.a: null', bound]), [bound])
  assert.deepEqual(
    findBreaks(
      old,
      old.filter((line) => !line.startsWith('needs ')),
    ),
    [],
    'less is needed',
  )
})
