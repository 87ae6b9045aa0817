/** The examples in the help of every command: they name commands and options that there are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Command } from 'commander'
import { addCommand, type CommandGroup, type CommandSpec } from './command.ts'
import { tasks } from './program.ts'

const program = new Command('postern')
for (const spec of Object.values(tasks).flat()) addCommand(program, {} as never, spec)

const listSpecs = (spec: CommandSpec | CommandGroup): readonly CommandSpec[] =>
  'commands' in spec ? spec.commands.flatMap(listSpecs) : [spec]
const specs = Object.values(tasks).flat().flatMap(listSpecs)

/** The command of each `postern …` in a line of shell, with its words. */
const readCalls = (line: string): string[][] =>
  line
    .split(/ \|+ | && /)
    .map((call) => call.match(/'[^']*'|"[^"]*"|[^\s]+/g) ?? [])
    .filter(([name]) => name === 'postern')
    .map(([, ...words]) => words)

const globalOptions = ['--json', '--env-file', '--url', '--token-file']

for (const { examples, use } of specs)
  test(`examples of ${use}`, () => {
    assert.ok(examples.length > 0)
    for (const words of examples.flatMap(readCalls)) {
      let found: Command = program
      for (const word of words) {
        const inner = found.commands.find((command) => command.name() === word)
        if (inner === undefined) break
        found = inner
      }
      assert.notEqual(found, program, words.join(' '))
      const known = [...globalOptions, ...found.options.map(({ long }) => long)]
      for (const option of words.filter((word) => word.startsWith('--')))
        assert.ok(known.includes(option), `${words.join(' ')}: ${option}`)
    }
  })
