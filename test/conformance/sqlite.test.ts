import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { moveClock, newClockOffset } from '../../src/store/shared/clock.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { newRing } from '../support/service.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { describeStore } from './store.ts'
import { rememberRing } from './subject.ts'

describeStore({
  name: 'SQLite',
  async open(t, options = {}) {
    const path = join(temporaryFolder(t), 'postern.db')
    const clock = newClockOffset()
    const ring = options.ring ?? newRing()
    const onFatal = (error: Error) => {
      throw error
    }
    const open = (change: { ring?: typeof ring; queueMax?: number } = {}) =>
      openSqliteStore({ path, ring, queueMax: options.queueMax ?? 1_000_000, clock, onFatal, ...change })
    const store = await open()
    rememberRing(store, ring)
    atEnd(t, () => store.close())
    const execute = async (sql: string) => {
      const database = new DatabaseSync(path)
      database.exec(sql)
      database.close()
    }
    return { store, advance: (byMs) => moveClock(clock, byMs), reopen: open, execute }
  },
})
