/** Packages of tools that few people run: `npm ci` installs them in the tool's folder when it is used. */
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @param folder has a package.json and its lock file; installed anew if the lock file is newer */
export function installOwnPackages(folder: URL): void {
  const path = fileURLToPath(folder)
  const installed = join(path, 'node_modules/.package-lock.json')
  const isCurrent =
    existsSync(installed) && statSync(installed).mtimeMs > statSync(join(path, 'package-lock.json')).mtimeMs
  if (isCurrent) return
  const { status } = spawnSync('npm', ['ci', '--workspaces=false'], { cwd: path, stdio: 'inherit' })
  if (status !== 0) throw new Error(`npm ci failed in ${path}`)
}
