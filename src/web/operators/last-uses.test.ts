import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lastUseEveryMs } from '../../domain/bounds.ts'
import { LastUses } from './last-uses.ts'

function newSubject() {
  const clock = { ms: 1_800_000_000_000 }
  const noted: string[] = []
  const note = async (id: string) => void noted.push(id)
  return { clock, noted, uses: new LastUses({ note, now: () => clock.ms }) }
}

test('a use is noted at most once in a while for each id', () => {
  const { clock, noted, uses } = newSubject()
  const use = (id: string) => uses.note(id, null)
  use('one')
  use('two')
  clock.ms += lastUseEveryMs - 1
  use('one')
  assert.deepEqual(noted, ['one', 'two'])
  clock.ms += 1
  use('one')
  assert.deepEqual(noted, ['one', 'two', 'one'])
})

test('a use that another process noted recently is not noted again', () => {
  const { clock, noted, uses } = newSubject()
  uses.note('one', clock.ms - lastUseEveryMs + 1)
  assert.deepEqual(noted, [])
  uses.note('one', clock.ms - lastUseEveryMs)
  assert.deepEqual(noted, ['one'])
})
