/** Packages that few people need: `npm ci` installs them in the folder that uses them, when it is used. */
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * False if npm failed.
 * @param folder has a package.json and its lock file; installed anew if the lock file is newer
 */
export function installOwnPackages(folder: URL): boolean {
  const path = fileURLToPath(folder)
  const installed = join(path, 'node_modules/.package-lock.json')
  const isCurrent =
    existsSync(installed) && statSync(installed).mtimeMs > statSync(join(path, 'package-lock.json')).mtimeMs
  if (isCurrent) return true
  return spawnSync('npm', ['ci', '--workspaces=false'], { cwd: path, stdio: 'inherit' }).status === 0
}
