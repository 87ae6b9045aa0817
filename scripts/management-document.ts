/** Writes docs/management.yaml from the table of operations: `npm run document`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { documentOf } from '../src/web/operators/api/openapi.ts'

const at = (path: string) => new URL(`../${path}`, import.meta.url)
const { version } = JSON.parse(readFileSync(at('package.json'), 'utf8')) as { version: string }

const head = '# Made by `npm run document` from src/management/operations.ts. Do not edit.\n'

/** The text of docs/management.yaml. */
export const managementDocument = (): string =>
  head +
  stringify(JSON.parse(JSON.stringify(documentOf(version))), { lineWidth: 110, aliasDuplicateObjects: false })

if (process.argv[1] === import.meta.filename) writeFileSync(at('docs/management.yaml'), managementDocument())
