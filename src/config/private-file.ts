/** Files that hold secrets: one check of who else can read or change them, for every file that has some. */
import { closeSync, fstatSync, openSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Any access by others, and writing by the group. Orchestrators mount secrets as 0440. */
const unsafeModes = 0o027
const writableByOthers = 0o002
/** In such a folder (`/tmp`, mounted secrets) only its owner can replace a file. */
const sticky = 0o1000

/**
 * The text of a file. The mode is that of the file that was opened, so a link is followed.
 * @param fault called if others have access: says who, and what to do
 * @throws if it cannot be read
 */
export function readPrivateFile(file: string, fault: (why: string) => void): string {
  const descriptor = openSync(file, 'r')
  try {
    const stats = fstatSync(descriptor)
    const isUnsafe = (stats.mode & unsafeModes) !== 0
    const why = isUnsafe ? othersRead(file) : stats.isFile() ? findOpenFolder(file) : null
    if (why !== null) fault(why)
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

const othersRead = (file: string): string =>
  `others may read ${file}, or its group may write it; run chmod 600 on it, or set the mode 0440 in an orchestrator's secret`

/** The folder of the file, and of the one that a link leads to. */
function findOpenFolder(file: string): string | null {
  const folders = [dirname(resolve(file)), dirname(realpathSync(file))]
  const open = folders.find((folder) => {
    const { mode } = statSync(folder)
    return (mode & writableByOthers) !== 0 && (mode & sticky) === 0
  })
  return open === undefined ? null : `others may replace ${file}; run chmod o-w on its folder ${open}`
}
