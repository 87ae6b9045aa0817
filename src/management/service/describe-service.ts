/** The service itself: its version, its database, its last backup. */
import { Type } from 'typebox'
import { keepDays } from '../../domain/bounds.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { iso } from '../resources.ts'

const Backup = closed({ at: time(), bytes: Type.Integer() })

export const describeService = operation({
  method: 'GET',
  path: '/v1/service',
  role: 'reader',
  wholeService: true,
  summary: 'Shows the versions of Postern and Node, the database with its size, and the last backup.',
  answer: closed({
    version: Type.String(),
    node: Type.String(),
    database: closed({
      kind: Type.Enum(['SQLite', 'PostgreSQL']),
      version: Type.String(),
      schema: Type.Integer(),
      bytes: Type.Integer({ description: 'On PostgreSQL, of the schema with its indexes.' }),
      logBytes: Type.Integer({ description: 'The write-ahead log of SQLite, which does not grow with the mail.' }),
      freeBytes: orNull(Type.Integer({ description: 'On the disk of the database file; null on PostgreSQL.' })),
    }),
    lastBackup: orNull(Backup, `By \`postern backup\` in the last ${keepDays} days. Others are not known.`),
  }),
  async run({ store, version }) {
    const [database, backup] = await Promise.all([store.describeDatabase(), store.findCheck('backup')])
    const { bytes } = (backup?.result ?? {}) as { bytes?: number }
    const lastBackup = backup === null ? null : { at: iso(backup.at), bytes: bytes ?? 0 }
    return done({ version, node: process.versions.node, database, lastBackup })
  },
})
