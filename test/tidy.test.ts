/**
 * Rules of the repository, as tests: allowed imports between folders, sizes of files and functions, a
 * header comment in every file, pinned dependencies, documents that match the code.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, matchesGlob, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { authHookRefusals, completeDocument, updateTables } from '../scripts/tables.ts'
import { refusals } from '../src/domain/request/rejection.ts'
import { services } from '../src/services/services.ts'
import { lockFiles, missingOptionals, readLock } from './support/complete-lock.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Without `.git`, as in an unpacked archive, all files but those that `.gitignore` would leave out. */
const listFiles = (): string[] =>
  existsSync(join(root, '.git'))
    ? execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
        .split('\n')
        .filter((file) => file !== '' && existsSync(join(root, file)))
    : globSync('**', { cwd: root, exclude: ['**/node_modules', '**/dist', 'out', '.postern'], withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(root, join(entry.parentPath, entry.name)))
const tracked = listFiles()
const sources = tracked.filter((file) => /^(src|test|bench|scripts|client|examples)\/.*\.ts$/.test(file))
/** Shipped code, not tests, benchmarks or examples. */
const isProduct = (file: string) => /^(client\/)?src\//.test(file) && !file.endsWith('.test.ts')
const read = (file: string) => readFileSync(join(root, file), 'utf8')

/**
 * The parts of `src`, from top to bottom, and what each may import: paths of folders or files. A file belongs
 * to the part with the longest path above it. It may import `domain`, its own part, and what is named at its
 * part and at those above. `type`: types alone. `sqlite` and `postgres` are the folders of `store`.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['cli', 'compose', 'observe/line-output.ts', 'services/proxies.ts'],
  compose: [
    'config',
    'web',
    'management',
    'reports',
    'delivery',
    'intake',
    'observe',
    'smtp',
    'store',
    'sqlite',
    'postgres',
  ],
  cli: ['config', 'management', 'templates', 'type observe', 'type store'],
  'cli/dev.ts': ['cli', 'store/crypto/key-ring.ts'],
  'cli/secret.ts': ['cli', 'store/crypto/key-ring.ts'],
  'cli/doctor.ts': [
    'cli',
    'store/crypto/key-ring.ts',
    'store/crypto/auth-hook-secret.ts',
    'store/shared/migrations.ts',
  ],
  config: ['services', 'type smtp', 'type store', 'type delivery/relay', 'type web'],
  'config/secrets.ts': ['config', 'store/crypto/key-ring.ts'],
  web: ['web/http', 'type observe'],
  'web/api': ['intake', 'observe/tracing.ts'],
  'web/links': ['templates', 'store/store.ts', 'store/crypto'],
  'web/auth-hooks': ['intake', 'smtp', 'store/store.ts', 'store/crypto'],
  'web/reports': ['reports', 'services', 'store/store.ts'],
  'web/ops': ['store/store.ts'],
  'web/operators': ['templates', 'type management'],
  'web/operators/listener.ts': ['web/operators', 'management', 'store/store.ts'],
  'web/operators/session.ts': ['web/operators/guard.ts', 'web/operators/last-uses.ts', 'type store'],
  'web/operators/form-nonces.ts': ['type store'],
  'web/operators/api': ['web/operators/last-uses.ts', 'web/operators/rates.ts', 'management', 'store/store.ts'],
  'web/operators/sign-in': [
    'web/operators/console',
    'web/operators/guard.ts',
    'web/operators/rates.ts',
    'web/operators/session.ts',
    'type store',
  ],
  'web/operators/console': [
    'web/operators/email-types.ts',
    'web/operators/guard.ts',
    'type web/operators',
    'management/list-all.ts',
    'management/operation/result.ts',
    'management/service',
    'services',
  ],
  'web/operators/console/dev-inbox': [
    'web/operators/console',
    'delivery/relay/capture-relay.ts',
    'management/inbox/inbox-email.ts',
  ],
  management: [
    'intake',
    'dns',
    'reports',
    'services',
    'templates',
    'type observe',
    'store/store.ts',
    'store/scripts/list-pages.ts',
    'type store',
  ],
  'management/service/check-relay.ts': ['delivery/relay'],
  'management/domains/domain-parts.ts': ['management', 'delivery/relay/relay-address.ts'],
  intake: ['templates', 'observe', 'store/store.ts'],
  delivery: ['services', 'templates', 'observe', 'store/store.ts', 'store/shared/clock.ts', 'type store'],
  'delivery/public-request.ts': ['services', 'dns'],
  'delivery/relay/smtp/find-address.ts': ['dns'],
  'config/stored-relays.ts': ['config', 'services', 'dns/private-address.ts'],
  'config/transports.ts': ['config', 'store/crypto/sealed-transport.ts'],
  'management/context.ts': ['type delivery/relay'],
  'config/relay-url.ts': ['config', 'services', 'dns/private-address.ts', 'type delivery/relay'],
  reports: ['services', 'smtp', 'type observe', 'store/store.ts', 'type store'],
  smtp: [],
  observe: ['services', 'store/store.ts', 'type store'],
  dns: [],
  templates: [],
  services: [],
  sqlite: ['store'],
  'sqlite/threads': ['sqlite/engine', 'sqlite/queue'],
  'sqlite/files': ['sqlite/engine'],
  'sqlite/queue': ['sqlite/engine'],
  'sqlite/engine': [],
  postgres: ['store'],
  'postgres/schema': ['postgres/engine', 'postgres/queue'],
  'postgres/queue': ['postgres/engine'],
  'postgres/engine': [],
  store: [],
  domain: [],
}

const product = sources.filter((name) => name.startsWith('src/') && !name.endsWith('.test.ts'))
const toPath = (file: string) => file.replace(/^src\/(store\/(?=sqlite|postgres))?/, '')
const isIn = (path: string, part: string) => path === part || path.startsWith(`${part}/`)

test('each part imports only what it may, and all of that', () => {
  const used = new Set<string>()
  for (const file of product) {
    const parts = Object.keys(mayImport).filter((part) => isIn(toPath(file), part))
    const own = parts.reduce((longest, part) => (part.length > longest.length ? part : longest), '')
    const named = parts.flatMap((part) => mayImport[part]?.map((name) => ({ part, name })) ?? [])
    for (const { imported, isType } of importsOf(file)) {
      const path = toPath(imported)
      const found = named.filter(({ name }) => isIn(path, isType ? name.replace(/^type /, '') : name))
      for (const { part, name } of found) used.add(`${part} → ${name}`)
      assert.ok(found.length > 0 || isIn(path, own) || isIn(path, 'domain'), `${file} may not import ${imported}`)
    }
  }
  const unused = Object.entries(mayImport)
    .flatMap(([part, names]) => names.map((name) => `${part} → ${name}`))
    .filter((arrow) => !used.has(arrow))
  assert.deepEqual(unused, [])
})

test('scripts import nothing from the tests, which the image is built without', () => {
  for (const file of sources.filter((name) => name.startsWith('scripts/')))
    for (const { imported } of importsOf(file)) assert.ok(!imported.startsWith('test/'), `${file} imports ${imported}`)
})

test('the files and folders of a folder do not import each other in a circle', () => {
  const arrows = new Map<string, Set<string>>()
  for (const file of product)
    for (const { imported } of importsOf(file)) {
      const [from, to] = [file.split('/'), imported.split('/')]
      const differ = from.findIndex((name, index) => name !== to[index])
      const [importer, target] = [from, to].map((names) => names.slice(0, differ + 1).join('/'))
      if (importer !== undefined && target !== undefined)
        arrows.set(importer, (arrows.get(importer) ?? new Set()).add(target))
    }
  const followed = new Set<string>()
  const follow = (part: string, way: readonly string[]): void => {
    assert.ok(!way.includes(part), [...way, part].join(' → '))
    if (followed.has(part)) return
    for (const next of arrows.get(part) ?? []) follow(next, [...way, part])
    followed.add(part)
  }
  for (const part of arrows.keys()) follow(part, [])
})

test('src/services alone names mail services', () => {
  const exceptions: Readonly<Record<string, RegExp>> = {
    'src/domain/app/allowed-entry.ts': /'microsoft'/, // begins the URLs of programs
    'src/domain/redaction/capitals.ts': /[A-Z]{3,}/g, // words in the replies of any server
    'src/store/scripts/people.ts': /'ses'/, // begins the ids of sessions
    'src/management/people/people-resources.ts': /'ses'/,
  }
  const names = services
    .filter(({ name }) => name !== 'generic')
    .flatMap(({ name, title }) => [name.length < 4 ? `'${name}'` : `\\b${name}\\b`, `\\b${title.split(' ')[0]}\\b`])
  const pattern = new RegExp(names.join('|'), 'i')
  for (const file of sources.filter((name) => isProduct(name) && name.startsWith('src/')))
    if (!file.startsWith('src/services/'))
      assert.doesNotMatch(read(file).replace(exceptions[file] ?? /$^/, ''), pattern, file)
})

/** The files that a file imports. `isType`: types alone. */
function importsOf(file: string): { readonly imported: string; readonly isType: boolean }[] {
  const imports = read(file).matchAll(/^(?:import|export) (?:([^'"]*?) from )?'(\.[^']+)'|import\('(\.[^']+)'\)/gm)
  return Array.from(imports, ([, names = '', path, lazy]) => ({
    imported: relative(root, join(root, dirname(file), path ?? lazy ?? '')),
    isType: /^type |^\{(?:\s*type [^,]*,?)+\s*\}$/.test(names),
  }))
}

/** A file, and everything that it imports directly or by way of others. */
function reachableFrom(file: string, reached = new Set<string>()): Set<string> {
  if (reached.has(file)) return reached
  reached.add(file)
  for (const { imported } of importsOf(file)) reachableFrom(imported, reached)
  return reached
}

// The endpoint and the delivery meet at the queue. Management cannot open sealed content.
const mayNotReach: [from: RegExp, target: RegExp][] = [
  [/^src\/web\/api\//, /^src\/delivery\//],
  [/^src\/(management|web\/operators)\//, /^src\/store\/crypto\//],
]

test('the API never reaches the delivery, and management never reaches the key ring', () => {
  for (const [from, target] of mayNotReach) {
    for (const file of sources.filter((name) => from.test(name) && !name.endsWith('.test.ts'))) {
      for (const reached of reachableFrom(file)) assert.doesNotMatch(reached, target, `from ${file}`)
    }
  }
})

test('mutation tests copy every file that the tests of the domain load', () => {
  const { ignorePatterns } = JSON.parse(read('stryker.config.json')) as { ignorePatterns: string[] }
  const copied = ignorePatterns.filter((pattern) => pattern.startsWith('!/')).map((pattern) => pattern.slice(2))
  const tests = sources.filter((name) => name.startsWith('src/domain/') && name.endsWith('.test.ts'))
  for (const file of new Set(tests.flatMap((name) => [...reachableFrom(name)])))
    assert.ok(
      copied.some((pattern) => matchesGlob(file, pattern)),
      `stryker.config.json does not copy ${file}`,
    )
})

test('the client imports nothing but itself, and knows no runtime', () => {
  for (const file of sources.filter((name) => name.startsWith('client/src/'))) {
    const code = read(file).replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
    for (const [, path = ''] of code.matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g)) {
      assert.match(path, /^\.\/[\w-]+\.ts$/, file)
    }
    assert.doesNotMatch(code, /\b(Buffer|Deno|require|setImmediate)\b/, file)
    // `settings.ts` reads defaults for options from the environment.
    if (!file.endsWith('/settings.ts')) assert.doesNotMatch(code, /\bprocess\b/, file)
  }
})

test('the domain is pure: no clock, no randomness but the CSPRNG, no input or output', () => {
  for (const file of sources.filter(
    (name) =>
      /^src\/(domain|templates)\//.test(name) &&
      !name.endsWith('.test.ts') &&
      name !== 'src/templates/locales/language-files.ts', // which reads text of the program
  )) {
    assert.doesNotMatch(read(file), /Date\.now|new Date\(\)|Math\.random|process\.|node:(fs|net|http)/, file)
  }
})

test('only config and main.ts know the environment', () => {
  for (const file of sources.filter((name) => name.startsWith('src/') && !/^src\/(main\.ts|config\/)/.test(name))) {
    assert.doesNotMatch(read(file), /process\.env/, file)
  }
})

test('commands write by their output alone; only main.ts and the log write to the terminal', () => {
  const writes = /\bconsole\.\w+\(|process\.std(?:out|err)|\bwriteSync\(|fs\.write/
  const allowed: Readonly<Record<string, RegExp>> = {
    'src/main.ts':
      /descriptor === 1 \? process\.stdout : process\.stderr|output: process\.stderr|process\.stdout\.rows/g,
    // It writes without waiting.
    'src/observe/line-output.ts': /\bwriteSync\(this|descriptor === 1 \? process\.stdout : process\.stderr/g,
    // The database itself, into a file or a pipe.
    'src/cli/backup.ts': /process\.stdout\.isTTY|'-' \? process\.stdout :/g,
  }
  for (const file of sources.filter((name) => name.startsWith('src/') && !/browser\/|\.test\.ts$/.test(name)))
    assert.doesNotMatch(read(file).replace(allowed[file] ?? /$^/, ''), writes, file)
})

test('files have at most 300 lines, tests 500, migrations aside', () => {
  for (const file of sources) {
    const lines = read(file).split('\n').length - 1
    const most = isProduct(file) ? 300 : 500
    assert.ok(lines <= most, `${file} has ${lines} lines; ${most} are allowed`)
  }
})

test('functions have at most 60 lines', () => {
  for (const file of sources.filter(isProduct)) {
    for (const { name, lines } of functionsOf(read(file))) {
      assert.ok(lines <= 60, `${name} in ${file} has ${lines} lines`)
    }
  }
})

test('comment lines end at 110 characters, tables and addresses aside', () => {
  for (const file of sources)
    for (const line of read(file).split('\n'))
      if (/^\s*(\*|\/\/|\/\*)/.test(line) && !/^\s*(\*|\/\/) *\||https?:/.test(line))
        assert.ok(line.length <= 110, `${file}: ${line}`)
})

/** Top-level functions and class members, found by the formatter's indentation. */
function functionsOf(text: string): { name: string; lines: number }[] {
  const lines = text.split('\n')
  return lines.flatMap((line, start) => {
    const match =
      /^( {0,2})(?:export )?(?:async )?(?:static )?(?:function (\w+)|(#?\w+)\(.*\{$|const (\w+) = .*=>.*\{$)/.exec(line)
    if (match === null || /^ *(if|for|while|switch|return)\b/.test(line)) return []
    const end = lines.findIndex((other, index) => index > start && other.startsWith(`${match[1]}}`))
    return end < 0 ? [] : [{ name: match[2] ?? match[3] ?? match[4] ?? '?', lines: end - start + 1 }]
  })
}

test('functions in SQL have at most 60 lines, and a file has one', () => {
  const files = tracked.filter((name) => name.endsWith('.sql') && name.includes('/functions/'))
  assert.ok(files.length > 10)
  for (const file of files) {
    const [comment = '', text = '', ...others] = read(file).split(/^(?=create function)/m)
    assert.match(comment, /^--/, `${file} opens with its purpose`)
    assert.deepEqual(others, [], file)
    const lines = text.trimEnd().split('\n').length
    assert.ok(lines <= 60, `${file} has ${lines} lines`)
  }
})

test('an insert names its columns', () => {
  for (const file of tracked.filter((name) => /^src\/store\/.*\.(ts|sql)$/.test(name))) {
    for (const [insert] of read(file).matchAll(/insert (?:or \w+ )?into \S+(?: as \w+)?\s+\S/gi)) {
      assert.match(insert, /\($/, `${file}: ${insert}`)
    }
  }
})

// Words of a private vocabulary, and words that have a better one in the glossary of CONTRIBUTING.md.
const unwanted =
  /\b(houses?|rooms|mend(s|ed|ing)?|whoever|lest|in hand|inHand|told|hence|thrice|upkeep|sweeps?|runbook)\b/g

test('code and documents use the words of the glossary', () => {
  const self = 'test/tidy.test.ts'
  for (const file of tracked.filter((name) => /\.(ts|sql|md|yaml|js)$/.test(name) && name !== self)) {
    assert.deepEqual(read(file).match(unwanted) ?? [], [], file)
  }
})

// A sentence names its subject first.
const badStart = /(?:\. |\* |\/\/ |'|^)(?:What|Who|Of|However) [^\n?]*$/gm

test('no sentence begins with What, Who, Of or However', () => {
  for (const file of tracked.filter((name) => /\.(ts|sql|md)$/.test(name) && name !== 'CONTRIBUTING.md')) {
    assert.deepEqual(read(file).match(badStart) ?? [], [], file)
  }
})

test('every source file opens with its purpose', () => {
  for (const file of sources.filter(isProduct)) {
    assert.match(read(file), /^\/\*\*/, file)
  }
})

test('no barrel files, no drawers for everything', () => {
  for (const file of sources.filter((name) => !name.startsWith('examples/nextjs/'))) {
    assert.doesNotMatch(file, /(^|\/)(index|utils?|helpers?|common|types|lib|misc)(\/|\.ts$)/, file)
  }
})

test('every dependency that is shipped has its reason, its newest release and a replacement in ADR 2', () => {
  const rows = readFileSync(join(root, 'docs/adr/0002-dependencies.md'), 'utf8').split('\n')
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const name of Object.keys(dependencies)) {
    const row = rows.find((line) => line.startsWith(`| ${name} `))
    assert.match(row ?? '', / \| 20\d\d-\d\d \| \S.* \|$/, name)
  }
})

test('dependencies are pinned exactly', () => {
  for (const file of tracked.filter((name) => /(^|\/)package\.json$/.test(name))) {
    const manifest = JSON.parse(read(file)) as Record<string, Record<string, string>>
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      assert.match(version, /^(npm:[\w@/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/, name)
    }
  }
})

test('the lock files name no registry, and are whole for every platform', () => {
  for (const file of lockFiles) {
    const lock = readLock(file)
    assert.doesNotMatch(JSON.stringify(lock), /"resolved":"https?:/, file)
    assert.deepEqual(missingOptionals(lock), [], `run test/support/complete-lock.ts: ${file}`)
  }
})

test('every package that is shipped, or runs on Linux, has its checksum in the lock file', () => {
  for (const [path, entry] of lockFiles.flatMap((file) => Object.entries(readLock(file).packages))) {
    if (!path.includes('node_modules/') || entry.link === true || entry.integrity !== undefined) continue
    const isElsewhere = entry.dev === true && entry.optional === true
    assert.ok(isElsewhere, `${path} has no checksum, and is no development tool of another platform`)
  }
})

test('the tables of documents are those of the code', () => {
  for (const file of tracked.filter((name) => name.endsWith('.md'))) {
    assert.equal(read(file), updateTables(read(file)), `${file}: run "npm run tables"`)
    completeDocument(read(file)) // throws for a name that nothing is generated as
  }
})

test('every refusal is in the documents of the API', () => {
  for (const code of Object.keys(refusals)) {
    const file = authHookRefusals.includes(code) ? 'docs/errors.md' : 'docs/openapi.yaml'
    assert.ok(read(file).includes(code), `${code} is not in ${file}`)
  }
})

test('every issue of a request is in docs/errors.md', () => {
  const page = read('docs/errors.md')
  const judges = /^src\/(domain\/(request|auth-hooks|app\/hosted-link)|intake|web\/api)/
  for (const file of product.filter((name) => judges.test(name)))
    for (const [, code = ''] of read(file).matchAll(
      /(?:refuser?\([^()]*\)\(|refuse\(|issue\(|code: )\s*'([a-z]+_[a-z0-9_]+)'/g,
    ))
      assert.ok(page.includes(`\`${code}\``), `${code} of ${file} is not in docs/errors.md`)
})

test('tables in documents are not padded', () => {
  for (const file of tracked.filter((name) => name.endsWith('.md'))) {
    const text = read(file).replace(/^ *```[\s\S]*?^ *```$|(`+)[^`\n]+\1/gm, '`')
    for (const [row] of text.matchAll(/^ *\|.*$/gm)) assert.doesNotMatch(row, /\S {2}|-{4}|\|[-:]/, `${file}: ${row}`)
  }
})

test('links between the documents have a target', () => {
  for (const file of tracked.filter((name) => name.endsWith('.md'))) {
    for (const [, target = ''] of read(file).matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)/g)) {
      assert.ok(existsSync(join(root, dirname(file), target)), `${file} links to ${target}`)
    }
  }
})

// The remote command line calls the management API of a service; relays may be mail APIs, and take tokens;
// the reports of SES name the certificate of their signature.
const callers = [
  'src/cli/remote-runner.ts',
  'src/delivery/relay/http/post.ts',
  'src/delivery/public-request.ts',
  'src/delivery/relay/oauth/grants.ts',
  'src/web/reports/ask-service.ts',
]

test('the service fetches nothing itself: it connects to its relays, its database and, if set, its OpenID provider, SNS, the receivers of webhooks and link domains', () => {
  for (const file of sources.filter((name) => name.startsWith('src/') && !name.endsWith('.test.ts'))) {
    if (callers.includes(file)) continue
    assert.doesNotMatch(read(file), /\bfetch\(|\bhttps?\.(get|request)\(|'node:https'|undici/, file)
  }
})

test('the tests that docs/threats.md names are there', () => {
  const tests = sources.filter((name) => /^(src|test)\/.*\.ts$/.test(name)).map(read)
  const [, security = ''] = read('docs/threats.md').split('## Attackers, defences')
  const lastCells = security.split('\n').map((line) => line.split('|').at(-2) ?? '')
  const named = lastCells.flatMap((cell) => cell.match(/`[^`]{20,}`/g) ?? [])
  assert.ok(named.length > 25)
  for (const name of named) {
    const text = name.slice(1, -1)
    assert.ok(
      tests.some((source) => source.includes(text)),
      text,
    )
  }
})
