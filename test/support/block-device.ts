/**
 * A disk for one test, whose power can be cut: XFS on a loop device. `cut` loses all data that was not
 * synced, like a power cut: the file system is shut down without writing its log.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lacking } from './installed.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'

export type Disk = {
  /** The mount point. */
  readonly folder: string
  /** From now on every write fails, and data that was not synced is lost. */
  cut(): void
  /** Mounts it again and recovers its log. No process may have files open. */
  restore(): void
}

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'pipe' })

export function makeDisk(scope: Scope): Disk {
  const work = temporaryFolder(scope)
  chmodSync(work, 0o755) // PostgreSQL runs as another user
  const image = join(work, 'disk.img')
  const folder = join(work, 'disk')
  run('truncate', '--size=512M', image)
  run('mkfs.xfs', '-q', image)
  mkdirSync(folder)
  let device = ''
  // A container that starts meanwhile keeps a mount of its own, and with it a device that was cut. So each
  // mount has a new device, beside another one with the same identity.
  const mount = () => {
    device = run('losetup', '--find', '--show', image).toString().trim()
    run('mount', '-o', 'nouuid', device, folder)
  }
  // Lazily, for the same reason: a device that was cut takes no more writes.
  const unmount = () => {
    run('umount', '--lazy', folder)
    run('losetup', '--detach', device)
  }
  mount()
  atEnd(scope, unmount)
  return {
    folder,
    cut: () => run('xfs_io', '-x', '-c', 'shutdown', folder),
    restore: () => {
      unmount()
      mount()
    },
  }
}

/** Mounts a file system in memory over a folder. Returns what takes it away. */
export function mountOver(folder: string, options = 'mode=755'): () => void {
  run('mount', '-t', 'tmpfs', '-o', options, 'tmpfs', folder)
  return () => void run('umount', '--lazy', folder)
}

/** A file system in memory of so many bytes. */
export function makeSmallDisk(scope: Scope, bytes: number): string {
  const folder = temporaryFolder(scope)
  atEnd(scope, mountOver(folder, `size=${bytes}`))
  return folder
}

/** Writes until not one more byte fits. */
export function fillDisk(path: string): void {
  for (const size of [1 << 22, 1 << 14, 1 << 9, 1]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}

/** A skip reason, or false. Most containers may not mount a loop device. */
export async function lackingDisk(): Promise<string | false> {
  const lacks = lacking('xfs_io', 'mount')
  if (lacks !== false) return lacks
  const undo: (() => unknown)[] = []
  try {
    makeDisk({ after: (end) => void undo.push(end) })
    return false
  } catch (error) {
    return `skipped: no file system of its own: ${(error as Error).message.trim()}`
  } finally {
    await undo.pop()?.()
  }
}
