/**
 * `npm run tables`: writes the tables of the documents that follow from the code, each between
 * `<!-- table: NAME -->` and `<!-- end -->`. `test/tidy.test.ts` fails if one of them is out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { renderRolesTable } from '../test/support/roles-table.ts'

type DocumentTable = { readonly name: string; readonly file: string; readonly render: () => string }

const tables: readonly DocumentTable[] = [{ name: 'roles', file: 'SECURITY.md', render: renderRolesTable }]

/** The path of each document with tables, and its text with the tables as the code has them. */
export function renderDocuments(): ReadonlyMap<string, string> {
  const documents = new Map<string, string>()
  for (const { name, file, render } of tables) {
    const text = documents.get(file) ?? readFileSync(toUrl(file), 'utf8')
    const place = new RegExp(`(?<=<!-- table: ${name} -->\n\n).*?(?=\n\n<!-- end -->)`, 's')
    if (!place.test(text)) throw new Error(`${file} has no place for the table ${name}`)
    documents.set(file, text.replace(place, render))
  }
  return documents
}

const toUrl = (file: string): URL => new URL(`../${file}`, import.meta.url)

if (import.meta.main) for (const [file, text] of renderDocuments()) writeFileSync(toUrl(file), text)
