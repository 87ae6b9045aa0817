/**
 * No statement of the write transaction grows with what somebody has added. Every method of the writer runs
 * on a database that one tenant has filled, SQLite counts the steps of each statement, and no statement of
 * the source is left out. The reads that serve a caller before it is known run there as well.
 */
import assert from 'node:assert/strict'
import { relative } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { stepMax } from '../../src/domain/bounds.ts'
import type { Call } from '../../src/store/sqlite/threads/calls.ts'
import { performRead, type ReadName } from '../../src/store/sqlite/threads/reads.ts'
import { openRecording, type RecordingConnection } from '../support/recording-connection.ts'
import { isMadeOf, listSql } from '../support/sql-literals.ts'
import { clearAll, operatorCases } from './stuffed-operator-cases.ts'
import { deleteAll, queueCases } from './stuffed-queue-cases.ts'
import { hash, nowMs, smallTables, stuff, stuffedRows } from './stuffed-rows.ts'
import { type Cases, excessOf, hasTooMany, type Ran, readStepsMax, runCase } from './stuffed-writer.ts'

const cases: Cases = { ...queueCases, ...operatorCases }

/** Reads before a signature, a secret or a session is verified, with and without a row to find. */
const earlyReads: readonly Call<ReadName>[] = [
  ...['app-0', 'app-1', 'none'].flatMap((slug) => [
    { name: 'findAppBySlug' as const, args: [slug] },
    ...['supabase', 'kratos'].map((system) => ({ name: 'listAuthHookSecrets' as const, args: [slug, system] })),
  ]),
  ...[hash('key', 0), hash('ses', 0), hash('tok', 0), hash('code', 0), hash('pk', 0), 'none'].flatMap((value) =>
    (['findKeyByHash', 'findSession', 'findTokenByHash', 'isSignInCode', 'findPasskey'] as const).map((name) => ({
      name,
      args: [value],
    })),
  ),
]

type Exceptions = Readonly<Record<string, string>>

/** Statements that may take more, by a part of them. */
const allowed: Exceptions = {
  'from bucket_journal where id > ?':
    'The writer reads the journal once, when it starts, before it takes a call; then only what is new.',
}

/** Methods with a few statements for each app that was disabled: an admin creates apps. */
const growingWithApps: readonly string[] = ['maintain']

/** Statements of the source that no case runs, by a part of them. */
const notRun: Exceptions = {
  'insert into app_lock': 'SQLite locks no rows.',
  'select 1 from app_lock': 'SQLite locks no rows.',
  'select suppression_id from suppression where  order by': 'It is the beginning of another one, which runs.',
}

const findPart = (exceptions: Exceptions, text: string): string | undefined =>
  Object.keys(exceptions).find((part) => text.includes(part))

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = `${root}src/store/sqlite`
const literals = listSql([
  { file: `${folder}/threads/calls.ts`, name: 'runCall' },
  { file: `${folder}/queue/write-transaction.ts`, name: 'newWriter' },
  { file: `${folder}/queue/write-transaction.ts`, name: 'WriteTransaction' },
])

test('no statement of the writer grows with what a tenant has added', async (t) => {
  const connection = await openRecording(t)
  stuff(connection)
  await t.test('a walk of any table takes several times what a statement may', () => checkWalks(connection))
  const exceeding = new Set<string>()
  for (const [name, own] of Object.entries(cases))
    for (const [label, work] of Object.entries(own))
      await t.test(`${name}: ${label}`, () => {
        const ran = runCase(connection, work)
        assert.ok(ran.some((call) => call.name === name))
        checkCalls(ran, exceeding)
      })
  await t.test('each statement of the source has run', () => checkSource(connection))
  await t.test('each exception is needed', () => checkExceptions(exceeding))
  await checkFlows(t, connection)
  await t.test('nor does a read before a caller is known', () => {
    for (const call of earlyReads) {
      connection.executions = []
      performRead({ sql: (text) => connection.sql(text), nowMs }, call)
      const excesses = connection.executions.map(excessOf).filter((excess) => excess !== null)
      assert.deepEqual(excesses, [], `${call.name} ${call.args}`)
    }
  })
  await t.test('none counts or empties a whole table, which SQLite does in one step', () => {
    for (const text of connection.texts)
      for (const { opcode } of connection.connection.prepare(`explain ${text}`).all())
        assert.ok(opcode !== 'Count' && opcode !== 'Clear', text)
  })
})

function checkWalks(connection: RecordingConnection): void {
  const tables = connection.connection.prepare(`select name from sqlite_schema where type = 'table'`).all()
  for (const name of tables.map((row) => String(row.name)).filter((table) => !(table in smallTables))) {
    connection.executions = []
    const [first] = connection.connection.prepare(`select * from ${name}`).columns()
    connection.sql(`select max(length(${first?.name})) from ${name}`).get()
    const [{ steps } = { steps: 0 }] = connection.executions
    assert.ok(steps > 3 * readStepsMax, `${name}: ${steps} steps`)
  }
  connection.texts.clear()
}

/** Fails for what exceeds a bound without an exception, and adds the exceptions that were needed. */
function checkCalls(ran: readonly Ran[], needed: Set<string> = new Set()): void {
  const faults = new Set<string>()
  for (const call of ran) {
    for (const execution of call.executions) {
      const excess = excessOf(execution)
      const part = findPart(allowed, execution.text)
      if (excess !== null && part !== undefined) needed.add(part)
      else if (excess !== null) faults.add(excess)
    }
    if (hasTooMany(call) && growingWithApps.includes(call.name)) needed.add(call.name)
    else if (hasTooMany(call)) faults.add(`${call.name} runs ${call.executions.length} statements`)
  }
  assert.deepEqual([...faults], [])
}

function checkSource(connection: RecordingConnection): void {
  const texts = [...connection.texts]
  const missing = literals.filter(
    (literal) =>
      !texts.some((text) => isMadeOf(text, literal)) && findPart(notRun, literal.parts.join('')) === undefined,
  )
  assert.deepEqual(
    missing.map(({ file, line, parts }) => `${relative(root, file)}:${line} ${parts.join('…')}`),
    [],
  )
}

function checkExceptions(needed: ReadonlySet<string>): void {
  const excepted = [...Object.keys(allowed), ...growingWithApps]
  assert.deepEqual([...needed].sort(), excepted.sort())
  for (const part of Object.keys(notRun))
    assert.ok(
      literals.some(({ parts }) => parts.join('').includes(part)),
      part,
    )
}

async function checkFlows(t: TestContext, connection: RecordingConnection): Promise<void> {
  // A deleted app has suppressions and webhooks, which go one after the other.
  const stepsOf = (tables: number) => tables * (Math.ceil(stuffedRows / stepMax) + 2)
  for (const [work, stepsMax] of [
    [clearAll, stepsOf(1)],
    [deleteAll, stepsOf(2)],
  ] as const)
    await t.test(`${work.name} ends after as many steps as its rows need`, () => {
      const ran = runCase(connection, work)
      assert.ok(ran.length > 10 && ran.length <= stepsMax, `${ran.length} calls, at most ${stepsMax}`)
      checkCalls(ran)
    })
}
