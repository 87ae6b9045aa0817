/** The model of worker sessions holds, and fails where a rule of the protocol is left out. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { lacking, toolPath } from '../support/installed.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** Searches all states. Returns the errors found, and the states. */
function search(t: TestContext, ...rules: string[]): { errors: number; states: number } {
  const cwd = temporaryFolder(t)
  const run = (file: string, args: string[]) => execFileSync(file, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 })
  copyFileSync(new URL('../../simulation/sessions.pml', import.meta.url), join(cwd, 'sessions.pml'))
  run(toolPath('spin'), ['-a', '-DIN_USE=1', '-DFAULTS=1', ...rules, 'sessions.pml'])
  run(toolPath('gcc'), ['-O2', '-DSAFETY', '-DMEMLIM=14000', '-o', 'pan', 'pan.c'])
  const report = run('./pan', ['-m200000', '-w26', '-E'])
  const [, errors] = /errors: (\d+)/.exec(report) ?? []
  const [, states] = /([\d.e+]+) states, stored/.exec(report) ?? []
  assert.doesNotMatch(report, /max search depth too small|out of memory/)
  return { errors: Number(errors), states: Number(states) }
}

const skip = lacking('spin', 'gcc', 'libc6-dev')

test('the model of sessions: one email, one fault, every state', { skip }, (t) => {
  const { errors, states } = search(t)
  assert.equal(errors, 0)
  t.diagnostic(`${states} states`)
})

for (const [rule, what] of [
  ['-DDIAL=20', 'a session may take ten seconds to be back after an outage'],
  ['-DNO_ADOPT', 'a session does not take over the leases of the one before it'],
  ['-DNO_HOLD', 'mail is taken back right after an outage'],
] as const)
  test(`the model of sessions fails if ${what}`, { skip }, (t) => {
    assert.ok(search(t, rule).errors > 0)
  })
