/**
 * A command is one object:
 *
 *     command({
 *       use: 'revoke <key>',
 *       about: 'revoke a key by its id; takes effect for the next request',
 *       examples: ['postern key revoke key_…'],
 *       run: ({ call }, [key]) => call('key.revoke', { params: { key } }),
 *       show: ({ id }) => `revoked ${id}`,
 *     })
 *
 * It runs operations, prints their answer as JSON or as `show` describes it, and fails if `fault` finds that
 * it did not do what was asked. `program.ts` has the list of all commands. They name operations without
 * importing them: the schemas of all operations would make `--help` half as slow again.
 */
import { type Command, Option } from 'commander'
import type { SchemaUse } from '../store/shared/migrations.ts'
import { type CliDeps, type CommandContext, withOperations } from './context.ts'
import { CommandFailed, print } from './output.ts'

export type CommandSpec = {
  /** Its name and its arguments. */
  readonly use: string
  readonly about: string
  /** In the order of the help. A function adds options with headings of their own. */
  readonly options?: readonly Option[] | ((command: Command) => Command)
  readonly examples: readonly string[]
  /** Below the options in its help. */
  readonly notes?: string
  act(deps: CliDeps, args: readonly string[], options: object): Promise<void> | void
}

/** Commands that begin with one word. */
export type CommandGroup = {
  readonly name: string
  readonly about: string
  readonly commands: readonly CommandSpec[]
}

/** Arguments in square brackets of `use` may be undefined. */
type Args = readonly (string | undefined)[]

type RunContext = CommandContext & { readonly deps: CliDeps }

type OperationCommand<Answer, Given extends Args, Options extends object> = Omit<CommandSpec, 'act'> & {
  run(context: RunContext, args: Given, options: Options): Promise<Answer>
  /** For people. */
  show(answer: Answer, args: Given, options: Options): string
  /** With `--json`; without it, the answer itself. */
  document?(answer: Answer): unknown
  /** For people, on standard error: it is no part of what a script reads. */
  aside?(answer: Answer): string
  /** Why the command failed although the operation did not; null if it did not. */
  fault?(answer: Answer, args: Given, options: Options): string | null
  readonly schemaUse?: SchemaUse
}

export const command = <Answer, Given extends Args = readonly [string, string], Options extends object = object>({
  aside,
  document = (answer) => answer,
  fault,
  run,
  schemaUse,
  show,
  ...spec
}: OperationCommand<Answer, Given, Options>): CommandSpec => ({
  ...spec,
  act: (deps, args, options) =>
    withOperations(
      deps,
      async (context) => {
        const [given, chosen] = [args as Given, options as Options]
        const answer = await run({ ...context, deps }, given, chosen)
        if (aside !== undefined && !deps.output.json) deps.output.err(`postern: ${aside(answer)}`)
        print(deps.output, document(answer), () => show(answer, given, chosen))
        const why = fault?.(answer, given, chosen) ?? null
        if (why !== null) throw new CommandFailed(why)
      },
      schemaUse,
    ),
})

/** Adds a command, or a group of them, to a program or a group. */
export function addCommand(parent: Command, deps: CliDeps, spec: CommandSpec | CommandGroup): Command {
  if ('commands' in spec) {
    const group = parent.command(spec.name).description(spec.about)
    for (const inner of spec.commands) addCommand(group, deps, inner)
    return group.addHelpText('after', describeExamples(spec.commands.flatMap(({ examples: [first = ''] }) => first)))
  }
  const { act, about, examples, notes, options = [], use } = spec
  const added = parent.command(use).description(about)
  if (typeof options === 'function') options(added)
  else for (const option of options) added.addOption(option)
  added.addHelpText('after', `${notes === undefined ? '' : `\n${notes}\n`}${describeExamples(examples)}`)
  return added.action(async (...given: unknown[]) => {
    const args = given.slice(0, added.registeredArguments.length) as string[]
    await act(deps, args, added.opts())
  })
}

const describeExamples = (lines: readonly string[]): string =>
  `\n${lines.length === 1 ? 'Example' : 'Examples'}:${lines.map((line) => `\n  ${line}`).join('')}`

/** An option with a parser of its value. */
export const option = (flags: string, about: string, parse?: (text: string) => unknown): Option => {
  const made = new Option(flags, about)
  return parse === undefined ? made : made.argParser(parse)
}

/** The values of an option that may be repeated. */
export const collect = (value: string, all: string[] = []) => [...all, value]

export const repeatable = (flags: string, about: string): Option => new Option(flags, about).argParser(collect)

/** Without the values that were not given. */
export const given = <Values extends object>(
  values: Values,
): { [Name in keyof Values]?: Exclude<Values[Name], undefined> } =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Values]?: Exclude<Values[Name], undefined>
  }
