/** A table in Markdown, without padding. */
export function renderTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  /** The rule below a column; left-aligned unless given. */
  ruleOf: (column: number) => '---' | '---:' = () => '---',
): string {
  const toLine = (cells: readonly string[]) => `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`
  return [heads, heads.map((_, column) => ruleOf(column)), ...rows].map(toLine).join('\n')
}
