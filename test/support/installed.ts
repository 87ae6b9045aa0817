/** Tests that need a missing program are skipped, with a reason. */
import { existsSync } from 'node:fs'

/** A skip reason, or false if every path exists (and the user is root, if `root` is set). */
export function lacking(paths: Record<string, string>, options: { root?: boolean } = {}): string | false {
  const absent = Object.entries(paths).filter(([, path]) => !existsSync(path))
  if (absent.length > 0)
    return `skipped: install ${absent.map(([name]) => name).join(', ')} (see CONTRIBUTING.md)`
  if (options.root && process.getuid?.() !== 0) return 'skipped: needs root'
  return false
}

export const chromium = '/usr/bin/chromium'
export const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
