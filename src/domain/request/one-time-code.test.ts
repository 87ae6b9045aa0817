import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isCode, parseCode, splitCode } from './one-time-code.ts'

test('a code is 4 to 10 digits, or 4 to 12 characters: letters and digits with single hyphens between them', () => {
  for (const code of ['1234', '1234567890', 'A123', 'abcd', 'ABCDEFGHIJKL', 'AB-CD', 'A-1-2-3', '12A-4567-890'])
    assert.ok(isCode(code), code)
  for (const code of [
    ...['', '123', '12345678901', 'ABC', 'ABCDEFGHIJKLM', '-ABC', 'ABC-', 'A--BC', 'AB CD', 'ABÇD', '１２３４'],
    ...['555-1234', '12-34', '+123456', 'AB_CD', '1234\n', ' 1234', 'AB\u200bCD', '<b>1', '١٢٣٤'],
  ])
    assert.ok(!isCode(code), JSON.stringify(code))
})

test('what is no code is refused by its type, its grammar or its email, without repeating it', () => {
  const issue = (value: unknown, isInvitation = false) => {
    const result = parseCode(value, isInvitation)
    assert.ok(!result.ok)
    assert.doesNotMatch(JSON.stringify(result.issues), /CANARY/)
    return result.issues.map(({ field, code }) => `${field} ${code}`).join()
  }
  for (const value of [123456, true, ['CANARY'], { a: 'CANARY' }]) assert.equal(issue(value), 'code not_a_string')
  assert.equal(issue('CANARY CODE'), 'code malformed_code')
  assert.equal(issue('246813', true), 'code code_not_for_invitations')
  assert.deepEqual(parseCode('aB-1', false), { ok: true, value: 'aB-1' })
})

test('six and eight characters are shown in halves', () => {
  const cases = { '246813': '246 813', '12345678': '1234 5678', 'AB-123': 'AB-123 ', '1234567': '1234567 ' }
  for (const [code, shown] of Object.entries(cases)) assert.equal(splitCode(code).join(' '), shown)
})
