/**
 * `npm run reliability`: runs every suite and writes docs/reliability.md, the fault matrix with the result
 * of each row. Repetitions: POSTERN_KILLS (60), POSTERN_POWER_CUTS (10), POSTERN_WRITE_KILLS (20),
 * POSTERN_MODEL_STEPS (400), POSTERN_FUZZ (40,000), POSTERN_CLUSTER_EMAILS (20,000).
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Counts, RowResult } from './support/row-reporter.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

const faults: readonly string[] = [
  'kill -9 at any step of a request',
  'crash after 202, before the claim',
  'crash in the middle of a group commit',
  'power cut',
  'crash in a migration',
  'old program, newer schema',
  'disk full',
  'fsync fails',
  'fsync is slow',
  'corrupt database',
  'a second writer holds the lock',
  'a long-running reader, a growing WAL',
  'PostgreSQL down or stopped',
  'PostgreSQL holds locks, or its standby is missing',
  'failover',
  'the reply to COMMIT is lost',
  'no connections left',
  'clocks jump or differ',
  'queue at capacity',
  'a million queued',
  'a great many emails due at once',
  'relay down, refused credentials',
  'relay very slow',
  'greylisting',
  'permanent refusal',
  'STARTTLS stripped, bad certificate',
  'connection lost before or after the dot',
  'crash after 250',
  '250, then the store fails',
  'two workers; a worker paused beyond its lease',
  'an email that crashes the worker',
  'SIGTERM under load',
  'the link expires in transit',
  'key revoked, app disabled or deleted, with mail queued',
  'one app floods',
  'numbers, arrays, null for strings',
  'invalid UTF-8, lone surrogates',
  '`__proto__`, deep nesting',
  'giant and compressed bodies',
  'slow headers, slow body',
  'request smuggling',
  'recipients smuggled through fields',
  'markup and look-alikes in names',
  'URL tricks',
  'guessed keys',
  'secrets in logs',
  'hosted links forged, expired, prefetched, framed',
  'inbox from another origin',
  'generated requests',
  'a worker is killed while it holds mail',
  'two processes with the worker role on one SQLite file',
  "a worker's machine vanishes without warning",
  'the log cannot be written',
  'a database file is moved, deleted or replaced',
  'a key in the ring is wrong or missing',
  'log rotation signals, terminal hangup',
  'too few file descriptors',
]

/** Rows that are measured rather than tested. */
const elsewhere: Readonly<Record<number, string>> = {
  20: '`npm run bench -- backlog` ([performance](performance.md))',
}

type Suite = { readonly failed: boolean; readonly results: readonly RowResult[] }

function runSuite(suite: string): Suite {
  const file = join(tmpdir(), `postern-rows-${process.pid}.jsonl`)
  const options = ['--test-reporter=./test/support/row-reporter.ts', `--test-reporter-destination=${file}`]
  // A thousand kills take long.
  const command = ['test/run.ts', suite, ...options, '--test-timeout=7200000']
  const { status } = spawnSync(process.execPath, command, { cwd: root, stdio: 'inherit' })
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  rmSync(file)
  return { failed: status !== 0, results: lines.map((line) => JSON.parse(line) as RowResult) }
}

function lineOf(row: number, store: RowResult['store'], results: readonly RowResult[]): string[] {
  const tests = results.filter((result) => result.rows.includes(row) && result.store === store)
  if (tests.length === 0) return []
  const ran = tests.filter(({ verdict }) => verdict !== 'skipped')
  const broken = tests.filter(({ verdict }) => verdict === 'broken')
  // A broken test may have reported no counts.
  const sum = (pick: (counts: Counts) => number) =>
    broken.some(({ counts }) => counts === undefined)
      ? '?'
      : tests.reduce((total, { counts }) => total + (counts === undefined ? 0 : pick(counts)), 0)
  const verdict = broken.length > 0 ? `**broken: ${broken[0]?.name}**` : ran.length === 0 ? 'skipped' : 'held'
  const tried = ran.reduce((total, { counts }) => total + (counts?.tried ?? 1), 0)
  const [lost, duplicated] = [sum((counts) => counts.lost), sum((counts) => counts.duplicated)]
  return [`| ${row} | ${faults[row - 1]} | ${store} | ${tried} | ${lost} | ${duplicated} | ${verdict} |`]
}

function tableOf(results: readonly RowResult[]): string {
  const lines = faults.flatMap((fault, i) => {
    const row = i + 1
    const found = (['SQLite', 'PostgreSQL'] as const).flatMap((store) => lineOf(row, store, results))
    if (found.length > 0) return found
    return [`| ${row} | ${fault} | | | | | ${elsewhere[row] ?? '**no test yet**'} |`]
  })
  return [
    '| row | fault | store | tried | lost | duplicated | verdict |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n')
}

/** Variables that set repetitions, shown in the command of the run. */
const amounts = [
  'POSTERN_KILLS',
  'POSTERN_POWER_CUTS',
  'POSTERN_WRITE_KILLS',
  'POSTERN_MODEL_STEPS',
  'POSTERN_FUZZ',
  'POSTERN_CLUSTER_EMAILS',
]
const command = [
  ...amounts.flatMap((name) => (process.env[name] === undefined ? [] : [`${name}=${process.env[name]}`])),
  'npm run reliability',
].join(' ')

/** The sections after the table: about the simulation, and what `npm run mutation` wrote. */
function otherSections(): string {
  const document = readFileSync(join(root, 'docs/reliability.md'), 'utf8')
  return document.slice(document.indexOf('## The simulation\n')).trimEnd()
}

const suites = ['units', 'sqlite', 'postgres', 'peers', 'console', 'faults'].map((name) => ({
  name,
  ...runSuite(name),
}))
const failed = suites.filter((suite) => suite.failed).map(({ name }) => `\`test:${name}\``)

const text = `# Reliability

These are the faults that are tested, with the results of the last run of \`${command}\` (${new Date().toISOString().slice(0, 10)}, Node
${process.versions.node}). The invariant: every email accepted (202) is delivered, suppressed, still queued, or expired, failed or
cancelled with a recorded reason. It is sent at most once, plus once per ambiguous attempt, never at or after
its expiry, and never for another app. Each duplicate counted here had such an attempt: its test fails otherwise.

${failed.length === 0 ? 'Every suite passed.' : `**Failed: ${failed.join(', ')}.**`}

${tableOf(suites.flatMap(({ results }) => results))}

Tests are named after their rows. Most are in \`test/faults/\`, \`test/conformance/\` and \`test/end-to-end/\`.
\`tried\` is how many times the fault was injected; a test that does not count injections counts as one.

${otherSections()}
`
writeFileSync(join(root, 'docs/reliability.md'), text)
if (failed.length > 0) process.exitCode = 1
