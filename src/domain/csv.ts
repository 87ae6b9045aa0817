/** Records as CSV, after RFC 4180, for spreadsheets. */

/** Spreadsheets run a text that begins so as a formula; relays and callers choose some of the texts. */
const formula = /^[=+\-@\t\r]/

/**
 * The columns are the fields of the first record. An object is written as JSON, and a line end within a cell
 * as a space.
 * @param lineEnd `\r\n` in files, `\n` on a terminal
 */
export function toCsv(records: readonly Readonly<Record<string, unknown>>[], lineEnd: '\r\n' | '\n' = '\r\n'): string {
  const columns = Object.keys(records[0] ?? {})
  const lines = [columns, ...records.map((record) => columns.map((column) => record[column]))]
  return lines.map((cells) => `${cells.map(toCell).join(',')}${lineEnd}`).join('')
}

function toCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).replace(/[\r\n]+/g, ' ')
  const safe = formula.test(text) ? `'${text}` : text
  return /[",;]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
