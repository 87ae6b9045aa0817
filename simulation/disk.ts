/**
 * The disk under the database: SQLite is real and its files are in memory. Its connections can be made to
 * fail as on a full or broken disk, and those of a process that dies are closed.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Owner, World } from './world.ts'

/** `torn`: the disk fails, and nobody knows whether the transaction was written. */
export type DiskFault = 'busy' | 'full' | 'torn'

const errors: Record<DiskFault, { readonly errcode: number; readonly message: string }> = {
  busy: { errcode: 5, message: 'database is locked' },
  full: { errcode: 13, message: 'database or disk is full' },
  torn: { errcode: 10, message: 'disk I/O error' },
}

export class Disk {
  /** The fault that each write meets. */
  fault: DiskFault | null = null
  /** How long a write takes. */
  writeMs = 0
  /** Called after each commit of a writer; the process may die then. */
  onCommit: () => void = () => {}
}

/**
 * Puts the disk under the databases that processes of Postern open. Its class cannot be replaced, because
 * modules hold it; its methods can.
 */
export function mountDisk(world: World, disk: Disk): void {
  const random = world.random('disk')
  const { prototype } = DatabaseSync
  const { close, exec, function: define, prepare } = prototype
  const owners = new WeakMap<DatabaseSync, { readonly owner: Owner; readonly release: () => void }>()
  const fail = (fault: DiskFault): never => {
    world.note(`disk ${fault}`)
    throw Object.assign(new Error(errors[fault].message), { code: 'ERR_SQLITE_ERROR', errcode: errors[fault].errcode })
  }
  /** The process that uses a database first has opened it. */
  const ownerOf = (database: DatabaseSync): Owner => {
    const known = owners.get(database)
    if (known !== undefined) return known.owner
    const owner = world.owner()
    const release = () => close.call(database)
    owners.set(database, { owner, release })
    if (owner !== world.outside) owner.ends.add(release)
    return owner
  }
  const commit = (database: DatabaseSync, statement: StatementSync) => {
    if (disk.fault === 'full') fail('full')
    if (disk.fault === 'torn') {
      disk.fault = null // the process ends, and another one finds a disk that works
      exec.call(database, random.chance(0.5) ? 'commit' : 'rollback')
      fail('torn')
    }
    const result = statement.run()
    disk.onCommit()
    return result
  }
  Object.assign(prototype, {
    exec(this: DatabaseSync, text: string) {
      ownerOf(this)
      exec.call(this, text)
    },
    function(this: DatabaseSync, ...values: Parameters<typeof define>) {
      ownerOf(this)
      define.call(this, ...values)
    },
    prepare(this: DatabaseSync, text: string) {
      const owner = ownerOf(this)
      const statement = prepare.call(this, text)
      if (owner === world.outside) return statement
      if (text === 'begin immediate') return { run: () => (disk.fault === 'busy' ? fail('busy') : statement.run()) }
      return text === 'commit' ? { run: () => commit(this, statement) } : statement
    },
    close(this: DatabaseSync) {
      const noted = owners.get(this)
      noted?.owner.ends.delete(noted.release)
      close.call(this)
    },
  })
}
