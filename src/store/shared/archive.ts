/**
 * An archive: everything that a database holds but its queue, as lines of JSON that any program can read. The
 * first line describes the archive, each further one is a row, and the last one has the number of rows:
 *
 *     {"format":1,"schema":5,"secrets":false,"postern":"1.0.0","at":"2027-01-31T12:00:00.000Z"}
 *     {"table":"app","row":{"app_id":"app_…","slug":"acme",…}}
 *     {"rows":{"app":1,…}}
 *
 * Both engines write the same columns. JSON in a column is text, bytes are `{"base64":"…"}`.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { BackupRefused, giveName, requireNewFile, syncFolder } from './files.ts'
import { type CopiedRows, type CopiedTable, copiedTables, copyStepMax } from './table-copy.ts'

export type ArchiveHead = {
  readonly format: 1
  /** The schema of the database that it was made of. */
  readonly schema: number
  /** Whether it has what gives access and what is encrypted: only such an archive can be imported. */
  readonly secrets: boolean
  /** The version that made it. */
  readonly postern: string
  readonly at: string
}

export type ArchivedCounts = Partial<Record<CopiedTable, number>>

/** Queued mail stays: two installations would both send it. So do the idempotency keys, which may name it. */
export const archivedTables = copiedTables.filter((table) => table !== 'queue' && table !== 'idempotency')

/** Columns that an archive without secrets lacks; null: the whole table. */
const secretColumns: Partial<Record<CopiedTable, readonly string[] | null>> = {
  delivery_key: ['key_hash', 'sealed'],
  token: ['token_hash'],
  signing_key: ['sealed'],
  transport: ['sealed'],
  webhook_receiver: ['sealed', 'old'],
  webhook_message: ['sealed'],
  secret: null,
}

type Row = CopiedRows['rows'][number]

function withoutSecrets({ table, rows }: CopiedRows): CopiedRows {
  const left = secretColumns[table]
  if (left === undefined) return { table, rows }
  if (left === null) return { table, rows: [] }
  const keep = (row: Row) => Object.fromEntries(Object.entries(row).filter(([column]) => !left.includes(column)))
  return { table, rows: rows.map(keep) }
}

/**
 * Writes an archive that only its owner can read. It appears under its name once it is whole and on disk.
 * @param produce calls `onRows` with all rows of `archivedTables`
 */
export async function writeArchive(
  file: string,
  head: ArchiveHead,
  produce: (onRows: (rows: CopiedRows) => Promise<void>) => Promise<void>,
): Promise<ArchivedCounts> {
  requireNewFile(file)
  const part = `${file}.part-${randomUUID()}`
  const counts: Record<string, number> = {}
  const output = await open(part, 'wx', 0o600)
  try {
    await output.appendFile(`${JSON.stringify(head)}\n`)
    await produce(async (read) => {
      const { table, rows } = head.secrets ? read : withoutSecrets(read)
      if (rows.length === 0) return
      counts[table] = (counts[table] ?? 0) + rows.length
      await output.appendFile(rows.map((row) => `${JSON.stringify({ table, row: row }, replaceBytes)}\n`).join(''))
    })
    await output.appendFile(`${JSON.stringify({ rows: counts })}\n`)
    await output.sync()
    giveName(part, file)
    syncFolder(file)
    return counts
  } finally {
    await output.close()
    rmSync(part, { force: true })
  }
}

/** `JSON.stringify` calls `toJSON` of a buffer before it calls this. */
function replaceBytes(this: Row, key: string, value: unknown): unknown {
  const bytes = this[key]
  return bytes instanceof Uint8Array ? { base64: Buffer.from(bytes).toString('base64') } : value
}

/**
 * Reads an archive in steps, each with rows of one table. Throws `BackupRefused` if it is not whole.
 * @param counts gets the rows of each table
 */
export function* readArchive(file: string, schema: number, counts: ArchivedCounts): Generator<CopiedRows> {
  const lines = readLines(file)
  requireImportable(parseLine(lines.next().value ?? '', 1), schema)
  let step: { table: CopiedTable; rows: Row[]; length: number } | null = null
  let number = 1
  for (const line of lines) {
    const { table, row, rows } = parseLine(line, ++number)
    if (rows !== undefined) {
      if (step !== null) yield step
      if (!isDeepStrictEqual(rows, counts) || lines.next().done !== true)
        throw new BackupRefused('the numbers of rows do not match the last line: the archive was changed')
      return
    }
    const known = archivedTables.find((name) => name === table)
    if (known === undefined || !isRow(row))
      throw new BackupRefused(`line ${number} of the archive is not a row of a known table`)
    if (step !== null && (step.table !== known || step.rows.length === copyStepMax || step.length > stepLengthMax)) {
      yield step
      step = null
    }
    step ??= { table: known, rows: [], length: 0 }
    step.length += line.length
    step.rows.push(Object.fromEntries(Object.entries(row).map(([column, value]) => [column, toValue(value)])))
    counts[known] = (counts[known] ?? 0) + 1
  }
  throw new BackupRefused('the archive is cut off: its last line is missing')
}

type Line = Partial<ArchiveHead> & { readonly table?: unknown; readonly row?: unknown; readonly rows?: unknown }

function parseLine(line: string, number: number): Line {
  try {
    const value = JSON.parse(line)
    if (isRow(value)) return value
  } catch {
    // reported below
  }
  throw new BackupRefused(`line ${number} of the archive is not a JSON object`)
}

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)

function requireImportable({ format, schema, secrets, postern }: Line, known: number): void {
  if (format !== 1) throw new BackupRefused('this is not an archive of Postern, or it was written by a newer version')
  if (schema !== known)
    throw new BackupRefused(
      `the archive has schema ${schema}, and this Postern makes schema ${known}: import it with version ${postern}, and then upgrade`,
    )
  if (secrets !== true)
    throw new BackupRefused('the archive has no secrets, so no key would work: export again with --secrets')
}

function toValue(value: unknown): unknown {
  if (!isRow(value)) return value
  const { base64 } = value
  return typeof base64 === 'string' ? Buffer.from(base64, 'base64') : null
}

const chunkBytes = 1024 * 1024
/** The settings of an app are the largest value: a few kilobytes. */
const lineMax = 4 * chunkBytes
/** Characters of a step, so that few long rows need no more memory than many short ones. */
const stepLengthMax = 8 * chunkBytes

function* readLines(file: string): Generator<string> {
  const descriptor = openArchive(file)
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    let rest = Buffer.alloc(0)
    for (let length = readSync(descriptor, chunk); length > 0; length = readSync(descriptor, chunk)) {
      let begin = 0
      const text = Buffer.concat([rest, chunk.subarray(0, length)])
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', begin)) {
        yield text.toString('utf8', begin, end)
        begin = end + 1
      }
      rest = text.subarray(begin)
      if (rest.length > lineMax) throw new BackupRefused('a line of the archive is too long')
    }
    if (rest.length > 0) yield rest.toString('utf8')
  } finally {
    closeSync(descriptor)
  }
}

function openArchive(file: string): number {
  try {
    if (!statSync(file).isFile()) throw new Error(`${file} is not a file`)
    return openSync(file, 'r')
  } catch (error) {
    throw new BackupRefused(`cannot read the archive: ${(error as Error).message}`, { cause: error })
  }
}
