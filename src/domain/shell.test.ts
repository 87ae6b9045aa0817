import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { quoteForShell } from './shell.ts'

test('a shell reads a quoted text as one word, and runs nothing of it', () => {
  const text = `a'b "c" $(touch x) \`id\` $HOME ';id;' \\ \n & | > < * ? # ~ !`
  const words = ["''", 'plain', text, "'", "'''"]
  for (const word of words) {
    const printed = execFileSync('sh', ['-c', `printf '%s' ${quoteForShell(word)}`], { encoding: 'utf8' })
    assert.equal(printed, word)
  }
})
