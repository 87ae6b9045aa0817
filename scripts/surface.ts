/**
 * Lists everything that users may rely on, one thing on a line, and compares two such lists. `npm run
 * surface` prints the list; a release keeps it as `releases/VERSION.txt`. docs/stability.md has the promise.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Command } from 'commander'
import { parse } from 'yaml'
import { addCommand } from '../src/cli/command.ts'
import type { CliDeps } from '../src/cli/context.ts'
import { tasks } from '../src/cli/program.ts'
import { settings } from '../src/config/settings.ts'
import { refusals } from '../src/domain/request/rejection.ts'
import { webhookEvents } from '../src/domain/webhooks/webhook.ts'
import { errorStatus } from '../src/management/operation/result.ts'
import { newDocument } from '../src/web/operators/api/openapi.ts'
import { root } from './build.ts'
import { listMetrics } from './tables.ts'

/**
 * A line is something that works: `GET /v1/apps 200.items[]: App`, or that every answer has, and not as null:
 * `GET /v1/apps 200.items always`. A line that begins with "needs" is something that a caller must give or
 * keep to: `needs POST /v1/tokens body.name`, `needs POST /v1/tokens body.name:maxLength=80`.
 */
export function listSurface(): string[] {
  const lines = [
    ...listApi('email', parse(readFileSync(join(root, 'docs/openapi.yaml'), 'utf8'))),
    ...listApi('management', newDocument('')),
    ...listCommands(),
    ...Object.keys(settings).map((name) => `variable ${name}`),
    ...listMetrics().map(({ name, type, labels }) => `metric ${name} ${type} {${labels.join(', ')}}`),
    ...webhookEvents.map((event) => `webhook ${event}`),
    ...Object.entries(refusals).map(([code, { status }]) => `refusal ${code} ${status}`),
    ...Object.entries(errorStatus).map(([code, status]) => `error ${code} ${status}`),
    ...listClient(),
  ]
  return [...new Set(lines)].toSorted()
}

/** The lines that a user of the old version loses, and what is needed now and was not. */
export function findBreaks(old: readonly string[], now: readonly string[]): string[] {
  const [before, after] = [new Set(old), new Set(now)]
  const lost = old.filter((line) => !line.startsWith('needs ') && !after.has(line))
  // The bound of an optional field that nobody has sent yet.
  const newFields = new Set(now.filter((line) => !before.has(line)).map((line) => line.split(': ')[0]))
  const known = new Set(old.map((line) => line.split(': ')[0]))
  const isOfNewField = (line: string) => {
    const [field = '', bound] = line.slice('needs '.length).split(/:(?=\w+=)/)
    return bound !== undefined && newFields.has(field) && !known.has(field)
  }
  const isNeeded = (line: string) => !before.has(line) && before.has(subjectOf(line)) && !isOfNewField(line)
  return [...lost, ...now.filter((line) => line.startsWith('needs ') && isNeeded(line))]
}

/** `needs POST /v1/tokens body.name` is about `POST /v1/tokens`. */
const subjectOf = (line: string): string => line.slice('needs '.length, line.lastIndexOf(' '))

type Json = Readonly<Record<string, unknown>>

/** Schemas with a name are listed once: generators make types of them, with this name. */
function listApi(api: string, document: Json): string[] {
  const resolve = (schema: Json): Json => {
    const names = typeof schema.$ref === 'string' ? schema.$ref.split('/').slice(1) : []
    return names.reduce<Json>((inner, name) => inner[name] as Json, names.length === 0 ? schema : document)
  }
  const { schemas } = document.components as { schemas: Record<string, Json> }
  const operations = Object.entries(document.paths as Record<string, Record<string, Json>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
  )
  return [
    ...Object.entries(schemas).flatMap(([name, schema]) => [
      ...listFields(schema, `schema ${api}.${name}`),
      ...(name.endsWith('Request') ? [] : listAlways(schema, `schema ${api}.${name}`)),
    ]),
    ...operations.flatMap(([name, { parameters = [], requestBody, responses }]) => [
      name,
      ...(parameters as Json[])
        .map(resolve)
        .flatMap(({ in: place, name: parameter, required, schema }) => [
          ...(required === true && place !== 'path' ? [`needs ${name} ${place}.${parameter}`] : []),
          ...listNeeds(schema as Json, `needs ${name} ${place}.${parameter}`, resolve),
          ...listFields(schema as Json, `${name} ${place}.${parameter}`),
        ]),
      ...listBodies(requestBody).flatMap((schema) => [
        ...listNeeds(schema, `needs ${name} body`, resolve),
        ...listFields(schema, `${name} body`),
      ]),
      ...Object.entries((responses ?? {}) as Record<string, Json>).flatMap(([status, response]) =>
        listBodies(resolve(response)).flatMap((schema) => [
          ...listFields(schema, `${name} ${status}`),
          ...listAlways(schema, `${name} ${status}`),
        ]),
      ),
    ]),
  ]
}

const listBodies = (body: unknown): Json[] =>
  Object.values(((body as Json | undefined)?.content ?? {}) as Record<string, { schema: Json }>).map(
    ({ schema }) => schema,
  )

/** Every field of a schema with its type, and each value of an enumeration. */
function listFields(schema: Json, place: string): string[] {
  const { $ref, anyOf, allOf, oneOf, const: value, enum: values, items, properties = {}, type } = schema
  const { additionalProperties, patternProperties = {} } = schema
  const others = [additionalProperties, ...Object.values(patternProperties as Json)]
  if (typeof $ref === 'string') return [`${place}: ${$ref.split('/').at(-1)}`]
  const alternatives = [anyOf, allOf, oneOf].flatMap((list) => (list ?? []) as Json[])
  return [
    ...alternatives.flatMap((inner) => listFields(inner, place)),
    ...[type ?? []].flat().map((name) => `${place}: ${name}`),
    ...[...((values ?? []) as unknown[]), ...(value === undefined ? [] : [value])].map((each) => `${place} = ${each}`),
    ...others.flatMap((inner) => (typeof inner === 'object' ? listFields(inner as Json, `${place}.*`) : [])),
    ...(items === undefined ? [] : listFields(items as Json, `${place}[]`)),
    ...Object.entries(properties as Record<string, Json>).flatMap(([name, inner]) =>
      listFields(inner, `${place}.${name}`),
    ),
  ]
}

/** The fields that every answer has, and that are never null. */
function listAlways({ items, properties = {}, required = [] }: Json, place: string): string[] {
  return [
    ...(items === undefined ? [] : listAlways(items as Json, `${place}[]`)),
    ...Object.entries(properties as Record<string, Json>).flatMap(([name, inner]) => {
      const field = `${place}.${name}`
      const isAlways = (required as string[]).includes(name) && !listFields(inner, field).includes(`${field}: null`)
      return [...(isAlways ? [`${field} always`] : []), ...listAlways(inner, field)]
    }),
  ]
}

const bounds = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'pattern'] as const

/** The fields that a request must have, and the bounds of all. */
function listNeeds(given: Json, place: string, resolve: (schema: Json) => Json): string[] {
  const schema = resolve(given)
  const { anyOf, allOf, oneOf, items, properties = {}, required = [] } = schema
  const alternatives = [anyOf, allOf, oneOf].flatMap((list) => (list ?? []) as Json[])
  const found = bounds.filter((bound) => schema[bound] !== undefined)
  return [
    // The last word of a line is what is needed.
    ...found.map((bound) => `${place}:${bound}=${String(schema[bound]).replaceAll(' ', '\\x20')}`),
    ...alternatives.flatMap((inner) => listNeeds(inner, place, resolve)),
    ...(items === undefined ? [] : listNeeds(items as Json, `${place}[]`, resolve)),
    ...Object.entries(properties as Record<string, Json>).flatMap(([name, field]) => [
      ...((required as string[]).includes(name) ? [`${place}.${name}`] : []),
      ...listNeeds(field, `${place}.${name}`, resolve),
    ]),
  ]
}

function listCommands(): string[] {
  const program = new Command('postern')
  // No command runs, so none has what it works with.
  for (const spec of Object.values(tasks).flat()) addCommand(program, {} as CliDeps, spec)
  return program.commands.flatMap((command) => describeCommand(command, 'postern'))
}

function describeCommand(command: Command, path: string): string[] {
  const name = `${path} ${command.name()}`
  const inner = command.commands.flatMap((each) => describeCommand(each, name))
  if (inner.length > 0) return inner
  return [
    name,
    ...command.registeredArguments.map((argument, n) => `${name} argument ${n + 1}: ${argument.name()}`),
    ...command.registeredArguments.flatMap(({ required }, n) => (required ? [`needs ${name} argument-${n + 1}`] : [])),
    ...command.options.map(({ flags }) => `${name} ${flags}`),
    ...command.options.flatMap(({ long, mandatory }) => (mandatory ? [`needs ${name} ${long}`] : [])),
    ...command.options.flatMap(({ argChoices = [], long }) => argChoices.map((value) => `${name} ${long} = ${value}`)),
  ]
}

/** The names that the modules of the client export; types are checked where they are used. */
function listClient(): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'client/package.json'), 'utf8'))
  const modules = Object.keys(exports).filter((entry) => !entry.endsWith('.json'))
  return modules.flatMap((entry) => {
    const file = entry === '.' ? 'postern' : entry.slice(2)
    const text = readFileSync(join(root, `client/src/${file}.ts`), 'utf8')
    const names = [...text.matchAll(/^export (?:async )?(?:function|const|class|type|interface) (\w+)/gm)]
    const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gms)].flatMap(([, list = '']) => list.split(','))
    const listed = lists
      .map((name) =>
        name
          .trim()
          .replace(/^type /, '')
          .replace(/.* as /, ''),
      )
      .filter(Boolean)
    return [...names.map(([, name]) => name), ...listed].map((name) => `client ${entry} ${name}`)
  })
}

const fileOf = (version: string): string => join(root, `releases/${version}.txt`)

export function writeSurface(version: string): void {
  writeFileSync(fileOf(version), `${listSurface().join('\n')}\n`)
}

/** The lines of the newest release. */
export function readLastSurface(): { readonly version: string; readonly lines: readonly string[] } {
  const versions = globSync('releases/*.txt', { cwd: root }).map((file) => basename(file, '.txt'))
  const [version = ''] = versions.toSorted((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  return { version, lines: readFileSync(fileOf(version), 'utf8').trim().split('\n') }
}

if (import.meta.main) console.log(listSurface().join('\n'))
