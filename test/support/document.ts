/**
 * The commands of a document, so that tests run what people read. As a program, it prints them:
 * `node test/support/document.ts docs/install.md 'Tarball' 2` prints the second block.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The blocks of shell commands below a heading, in order. */
export function commandsOf(file: string, heading: string): string[] {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
  const [, section] = text.split(`\n## ${heading}\n`)
  if (section === undefined) throw new Error(`${file} has no heading "${heading}"`)
  const [own = ''] = section.split(/^## /m)
  return Array.from(own.matchAll(/^```sh\n([\s\S]*?)^```$/gm), ([, block = '']) => block)
}

const [, program, file = '', heading = '', n = '1'] = process.argv
if (program === fileURLToPath(import.meta.url)) console.log(commandsOf(file, heading)[Number(n) - 1])
