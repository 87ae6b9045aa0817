/**
 * Loaded by Stryker before the tests of each mutant. Properties run on one seed, so that a score can be
 * repeated. The first failing test ends the process, because one failure is enough.
 */
import { writeSync } from 'node:fs'
import { afterEach } from 'node:test'
import fc from 'fast-check'

fc.configureGlobal({ seed: 1, endOnFailure: true })

afterEach((context) => {
  if ('passed' in context && context.passed) return
  writeSync(1, 'not ok 1 - a test noticed the mutant\n') // without it Stryker would count an error
  process.exit(1)
})
