/** A Node 20: from `POSTERN_TEST_NODE20`, or on the PATH outside `node_modules`. */
import { execFileSync } from 'node:child_process'
import { delimiter, join } from 'node:path'

export function findNode20(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((entry) => !entry.includes('node_modules'))
  const candidates = [process.env.POSTERN_TEST_NODE20 ?? '', ...folders.map((entry) => join(entry, 'node'))]
  return candidates.find((path) => path !== '' && versionOf(path).startsWith('v20.'))
}

function versionOf(node: string): string {
  try {
    return execFileSync(node, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return ''
  }
}
