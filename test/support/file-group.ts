/**
 * Runs several test files in one process, one after another. Starting a process and importing the service
 * take as long as the tests of most files.
 */
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

/** Writes a file for each of `count` groups, which runs its part of `files`. */
export function writeGroups(folder: string, files: readonly string[], count: number): string[] {
  return Array.from({ length: count }, (_, group) => {
    const urls = files.filter((_, n) => n % count === group).map((file) => pathToFileURL(resolve(file)).href)
    const path = join(folder, `group-${group + 1}.mjs`)
    writeFileSync(path, `import { runFiles } from '${import.meta.url}'\nawait runFiles(${JSON.stringify(urls)})\n`)
    return path
  })
}

/** Node takes `--test-timeout`, which is for one test, for a timeout of Infinity. */
const longest = 2 ** 31 - 1

/** Each file is a test that contains its own tests, so what it registers with `after` runs at its end. */
export async function runFiles(urls: readonly string[]): Promise<void> {
  for (const url of urls) await test(url, { timeout: longest }, async () => void (await import(url)))
}

/** Whether an event is about a whole file, whose tests have events of their own. */
export const isWholeFile = (event: { readonly file?: string | undefined; readonly nesting: number }): boolean =>
  event.nesting === 0 && event.file === import.meta.filename
