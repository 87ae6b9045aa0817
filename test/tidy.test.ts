/**
 * Rules of the repository, as tests: allowed imports between folders, sizes of files and functions, a
 * header comment in every file, pinned dependencies, documents that match the code.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { services } from '../src/services/services.ts'
import { lockFiles, missingOptionals, readLock } from './support/complete-lock.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(root, file)))
const sources = tracked.filter((file) => /^(src|test|bench|scripts|client|examples)\/.*\.ts$/.test(file))
/** Shipped code, not tests, benchmarks or examples. */
const isProduct = (file: string) => /^(client\/)?src\//.test(file) && !file.endsWith('.test.ts')
const read = (file: string) => readFileSync(join(root, file), 'utf8')

// Downward only: main → compose, cli → config → web → management → intake, delivery, feedback → dns,
// templates, observe → store → services → domain. A folder may import itself, those listed, and `domain`.
const mayImport: Record<string, string[]> = {
  main: ['cli', 'compose', 'config', 'observe'],
  compose: [
    'config',
    'web',
    'management',
    'feedback',
    'delivery',
    'dns',
    'intake',
    'observe',
    'store',
    'sqlite',
    'postgres',
  ],
  config: ['delivery', 'dns', 'feedback', 'services', 'web', 'store'],
  cli: ['config', 'management', 'feedback', 'services', 'templates', 'observe', 'store'],
  web: ['management', 'feedback', 'intake', 'delivery', 'services', 'templates', 'observe', 'store'],
  management: ['feedback', 'intake', 'delivery', 'dns', 'services', 'templates', 'observe', 'store'],
  intake: ['templates', 'observe', 'store'],
  delivery: ['dns', 'services', 'templates', 'observe', 'store'],
  feedback: ['services', 'store', 'observe'],
  observe: ['services', 'store'],
  dns: [],
  templates: [],
  services: [],
  store: [],
  sqlite: ['store'],
  postgres: ['store'],
  domain: [],
}

const engines = ['sqlite', 'postgres']

/** The top folder of a file in `src`. Each store engine counts as a folder of its own. */
function folderOf(file: string): string {
  const [, first = '', second = ''] = file.split('/')
  if (first === 'store' && engines.includes(second)) return second
  return first.replace(/\.ts$/, '')
}

test('dependencies point downward only', () => {
  for (const file of sources.filter((name) => name.startsWith('src/') && !name.endsWith('.test.ts'))) {
    const folder = folderOf(file)
    for (const imported of importsOf(file)) {
      const target = folderOf(imported)
      const allowed = target === folder || target === 'domain' || mayImport[folder]?.includes(target)
      assert.ok(allowed, `${file} imports ${imported}: ${folder} may not import ${target}`)
    }
  }
})

test('the listeners know nothing of each other; the console calls operations, and knows nothing of the API beside it', () => {
  const parts: Record<string, RegExp> = {
    'src/web/http/': /^src\/web\/http\//,
    'src/web/api/': /^src\/web\/(http|api)\//,
    'src/web/links/': /^src\/web\/(http|links)\//,
    'src/web/ops/': /^src\/web\/(http|ops)\//,
    'src/web/operators/': /^src\/web\/(http|operators)\//,
    'src/web/operators/api/': /^src\/web\/(http|operators\/(api|rates|last-uses))/,
    'src/web/operators/sign-in/': /^src\/web\/(http|operators\/(?!api|listener))/,
    'src/web/operators/console/': /^src\/web\/(http|operators\/(?!api|listener))/,
  }
  for (const [part, allowed] of Object.entries(parts))
    for (const file of sources.filter((name) => name.startsWith(part) && !name.endsWith('.test.ts')))
      for (const imported of importsOf(file).filter((name) => name.startsWith('src/web/')))
        assert.match(imported, allowed, `${file} imports ${imported}`)
})

test('src/services alone names mail services', () => {
  const exceptions: Readonly<Record<string, RegExp>> = {
    'src/domain/app/allowed-url.ts': /'microsoft'/, // begins the URLs of programs
    'src/store/operators/people.ts': /'ses'/, // begins the ids of sessions
    'src/management/people/people-resources.ts': /'ses'/,
  }
  const names = services
    .filter(({ name }) => name !== 'generic')
    .flatMap(({ name, title }) => [`\\b${title.split(' ')[0]}\\b`, `'${name}'`])
  const pattern = new RegExp(names.join('|'))
  for (const file of sources.filter((name) => isProduct(name) && name.startsWith('src/')))
    if (!file.startsWith('src/services/'))
      assert.doesNotMatch(read(file).replace(exceptions[file] ?? /$^/, ''), pattern, file)
})

test('in an engine of the store, the parts import downward only', () => {
  const parts: Record<string, string> = {
    'sqlite/engine': 'engine',
    'sqlite/queue': 'engine|queue',
    'sqlite/files': 'engine|files',
    'sqlite/threads': 'engine|queue|threads',
    'postgres/engine': 'engine',
    'postgres/queue': 'engine|queue',
    'postgres/schema': 'engine|queue|schema',
  }
  for (const file of sources.filter((name) => /^src\/store\/(sqlite|postgres)\/.*\//.test(name))) {
    const [, , engine = '', part = ''] = file.split('/')
    const allowed = parts[`${engine}/${part}`] ?? assert.fail(`${file} is in no part of its engine`)
    for (const imported of importsOf(file).filter((name) => name.startsWith(`src/store/${engine}/`)))
      assert.match(imported, new RegExp(`^src/store/${engine}/(${allowed})/`), `${file} imports ${imported}`)
  }
})

/** The files of the repository that a file imports. */
function importsOf(file: string): string[] {
  const paths = read(file).matchAll(/(?:from|import) '(\.[^']+)'|import\('(\.[^']+)'\)/g)
  return Array.from(paths, ([, path, lazy]) => relative(root, join(root, dirname(file), path ?? lazy ?? '')))
}

/** The files of the repository from which a file imports a value, and not only types. */
function valueImportsOf(file: string): string[] {
  const statements = read(file).matchAll(/^import (?!type )(?:\{([^}]*)\} |[^{';]*)from '(\.[^']+)'/gm)
  const isType = (name: string) => name.trim() === '' || /^\s*type /.test(name)
  return Array.from(statements, ([, names, path = '']) =>
    names?.split(',').every(isType) ? [] : join(dirname(file), path),
  ).flat()
}

type Arrow = {
  readonly from: string
  readonly to: RegExp
  /** The only files that may import, and be imported. */
  readonly importer: RegExp
  readonly imported: RegExp
  /** Types may be imported by all. */
  readonly typesAreFree: boolean
}
// Where ARCHITECTURE.md says that one part imports little of another.
const arrows: readonly Arrow[] = [
  {
    from: 'src/web/',
    to: /^src\/delivery\//,
    importer: /^src\/web\/operators\/console\/inbox\//,
    imported: /^src\/delivery\/relay\/capture-relay\.ts$/,
    typesAreFree: false,
  },
  {
    from: 'src/management/',
    to: /^src\/delivery\//,
    importer: /^src\/management\/(service\/check-relay|domains\/domain-parts)\.ts$/,
    imported: /^src\/delivery\/relay\//,
    typesAreFree: false,
  },
  {
    from: 'src/config/',
    to: /^src\/(?!config|domain|services)/,
    importer: /^src\/config\/secrets\.ts$/,
    imported: /^src\/store\/crypto\/key-ring\.ts$/,
    typesAreFree: true,
  },
  {
    from: 'src/cli/',
    to: /^src\/store\//,
    importer: /^src\/cli\/(dev|doctor|secret)\.ts$/,
    imported: /^src\/store\/(crypto\/(key-ring|hook-secret)|hook-store|shared\/migrations)\.ts$/,
    typesAreFree: true,
  },
]

test('parts import of others no more than ARCHITECTURE.md says', () => {
  for (const { from, to, importer, imported, typesAreFree } of arrows) {
    const files = sources.filter((name) => name.startsWith(from) && !name.endsWith('.test.ts'))
    const pairs = files.flatMap((file) =>
      (typesAreFree ? valueImportsOf(file) : importsOf(file))
        .filter((path) => to.test(path))
        .map((path) => ({ file, path })),
    )
    assert.ok(pairs.length > 0, `${from} imports nothing of ${to}: leave the arrow out`)
    for (const { file, path } of pairs) {
      assert.match(file, importer, `${file} imports ${path}`)
      assert.match(path, imported, `${file} imports ${path}`)
    }
  }
})

/** A file, and everything that it imports directly or by way of others. */
function reachableFrom(file: string, reached = new Set<string>()): Set<string> {
  if (reached.has(file)) return reached
  reached.add(file)
  for (const imported of importsOf(file)) reachableFrom(imported, reached)
  return reached
}

test('the console calls operations alone: it has neither the store nor the parts of the service', () => {
  const forbidden =
    /^src\/(store|intake)\/|^src\/management\/(perform|operation\/(operation|find-target))\.ts$/
  for (const file of sources.filter((name) => name.startsWith('src/web/operators/console/')))
    if (!file.endsWith('.test.ts'))
      for (const imported of importsOf(file)) assert.doesNotMatch(imported, forbidden, file)
})

test('no file imports itself by way of others', () => {
  for (const file of sources.filter((name) => name.startsWith('src/'))) {
    const reached = new Set<string>()
    for (const imported of importsOf(file)) reachableFrom(imported, reached)
    assert.ok(!reached.has(file), file)
  }
})

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
  for (const file of sources.filter(
    (name) => name.startsWith('src/') && !/^src\/(main\.ts|config\/)/.test(name),
  )) {
    assert.doesNotMatch(read(file), /process\.env/, file)
  }
})

test('commands write by their output alone; only main.ts and the log write to the terminal', () => {
  const writes = /\bconsole\.\w+\(|process\.std(?:out|err)|\bwriteSync\(|fs\.write/
  const allowed: Readonly<Record<string, RegExp>> = {
    'src/main.ts': /descriptor === 1 \? process\.stdout : process\.stderr|output: process\.stderr/g,
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
      /^( {0,2})(?:export )?(?:async )?(?:static )?(?:function (\w+)|(#?\w+)\(.*\{$|const (\w+) = .*=>.*\{$)/.exec(
        line,
      )
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
  for (const file of sources) {
    assert.doesNotMatch(file, /(^|\/)(index|utils?|helpers?|common|types|lib|misc)(\/|\.ts$)/, file)
  }
})

test('engines of the store are imported by the composition root alone', () => {
  for (const file of sources.filter(
    (name) => name.startsWith('src/') && !engines.includes(folderOf(name)) && !/^src\/compose\//.test(name),
  )) {
    assert.doesNotMatch(read(file), /from '.*(sqlite|postgres)\//, file)
  }
})

test('dependencies are pinned exactly', () => {
  for (const file of tracked.filter((name) => /(^|\/)package\.json$/.test(name))) {
    const manifest = JSON.parse(read(file)) as Record<string, Record<string, string>>
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      assert.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/, name)
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

test('every variable of the configuration is in its document', () => {
  const files = sources.filter((file) => /^src\/config\//.test(file) && isProduct(file))
  const names = new Set(files.flatMap((file) => read(file).match(/POSTERN_[A-Z_]+[A-Z]/g) ?? []))
  assert.ok(names.size >= 14)
  const documented = read('docs/configuration.md')
  for (const name of names) assert.ok(documented.includes(`\`${name}\``), `${name} is not documented`)
})

test('every refusal is in the documents of the API', () => {
  const codes = [...read('src/domain/request/rejection.ts').matchAll(/^ {2}(\w+): \{\s+status/gm)].map(
    ([, code]) => code ?? '',
  )
  assert.ok(codes.length >= 11)
  for (const code of codes) {
    const ofHooks = ['notice_not_sent', 'unsupported_email'].includes(code)
    for (const file of ofHooks ? ['docs/hooks.md'] : ['docs/api.md', 'docs/openapi.yaml'])
      assert.ok(read(file).includes(code), `${code} is not in ${file}`)
  }
})

test('tables in documents are not padded', () => {
  for (const file of tracked.filter((name) => name.endsWith('.md'))) {
    const text = read(file).replace(/^ *```[\s\S]*?^ *```$|(`+)[^`\n]+\1/gm, '`')
    for (const [row] of text.matchAll(/^ *\|.*$/gm))
      assert.doesNotMatch(row, /\S {2}|-{4}|\|[-:]/, `${file}: ${row}`)
  }
})

test('links between the documents lead somewhere', () => {
  for (const file of tracked.filter((name) => name.endsWith('.md'))) {
    for (const [, target = ''] of read(file).matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)/g)) {
      assert.ok(existsSync(join(root, dirname(file), target)), `${file} links to ${target}`)
    }
  }
})

// The remote command line calls the management API of a service; relays may be mail APIs, and take tokens.
const callers = [
  'src/cli/remote-runner.ts',
  'src/delivery/relay/http/post.ts',
  'src/delivery/webhooks/post-webhook.ts',
  'src/delivery/relay/oauth/bounded-fetch.ts',
]

test('the service fetches nothing itself: it connects to its relays, its database and, if set, its OpenID provider and the receivers of webhooks', () => {
  for (const file of sources.filter((name) => name.startsWith('src/') && !name.endsWith('.test.ts'))) {
    if (callers.includes(file)) continue
    assert.doesNotMatch(read(file), /\bfetch\(|\bhttps?\.(get|request)\(|'node:https'|undici/, file)
  }
})

test('the tests that SECURITY.md names are there', () => {
  const tests = sources.filter((name) => /^(src|test)\/.*\.ts$/.test(name)).map(read)
  const [, security = ''] = read('SECURITY.md').split('## Attackers, defences')
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
