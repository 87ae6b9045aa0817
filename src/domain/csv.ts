/** Records as CSV, after RFC 4180, for spreadsheets. */

/** Spreadsheets run a text that begins so as a formula; relays and callers choose some of the texts. */
const formula = /^[=+\-@\t\r]/

/** The columns are the fields of the first record. An object is written as JSON. */
export function toCsv(records: readonly Readonly<Record<string, unknown>>[]): string {
  const columns = Object.keys(records[0] ?? {})
  const lines = [columns, ...records.map((record) => columns.map((column) => record[column]))]
  return lines.map((cells) => `${cells.map(toCell).join(',')}\r\n`).join('')
}

function toCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const safe = formula.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
