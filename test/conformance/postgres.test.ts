import assert from 'node:assert/strict'
import { Connection } from '../../src/store/postgres/engine/connection.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { moveClock, newClockOffset } from '../../src/store/shared/clock.ts'
import { databaseAt } from '../support/database.ts'
import { postgresUrl } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { describeStore } from './store.ts'
import { rememberRing } from './subject.ts'

describeStore({
  name: 'PostgreSQL',
  async open(t, options = {}) {
    const address = databaseAt(await postgresUrl(t))
    assert.ok(address.engine === 'postgres')
    const clock = newClockOffset()
    const ring = options.ring ?? newRing()
    const open = (change: { ring?: typeof ring; queueMax?: number } = {}) =>
      openPostgresStore({ address, ring, queueMax: options.queueMax ?? 1_000_000, clock, ...change })
    const store = await open()
    rememberRing(store, ring)
    atEnd(t, () => store.close())
    const execute = async (sql: string) => {
      const connection = new Connection({ address })
      await connection.transaction(async (query) => {
        await query(`set local search_path = "${address.schema}"`)
        await query(sql)
      }, 10_000)
      await connection.close()
    }
    return { store, advance: (byMs) => moveClock(clock, byMs), reopen: open, execute }
  },
})
