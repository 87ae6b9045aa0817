/** A Node 20: that of `test/needs.json`, or the one on the PATH outside `node_modules`. */
import { execFileSync } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { lacking, toolPath } from './installed.ts'

const folders = (process.env.PATH ?? '').split(delimiter).filter((entry) => !entry.includes('node_modules'))

export const node20 = [toolPath('node20'), ...folders.map((entry) => join(entry, 'node'))].find(isNode20) ?? ''
/** A skip reason, or false. */
export const lackingNode20 = node20 === '' && lacking('node20')

function isNode20(path: string): boolean {
  try {
    const version = execFileSync(path, ['--version'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return version.startsWith('v20.')
  } catch {
    return false
  }
}
