import assert from 'node:assert/strict'
import { moveClock, newClockOffset } from '../../src/store/clock.ts'
import { type PostgresAddress, parseDatabaseUrl } from '../../src/store/database-url.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { testDatabaseUrl } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { describeStore } from './store.ts'
import { rememberRing } from './subject.ts'

describeStore({
  name: 'PostgreSQL',
  async open(t, options = {}) {
    const address = parseDatabaseUrl(await testDatabaseUrl(t))
    assert.ok('engine' in address && address.engine === 'postgres')
    return openOn(address, options)

    async function openOn(at: PostgresAddress, { ring = newRing(), queueMax = 1_000_000 }: typeof options) {
      const clock = newClockOffset()
      const open = (change: { ring?: typeof ring; queueMax?: number } = {}) =>
        openPostgresStore({ address: at, ring, queueMax, clock, ...change })
      const store = await open()
      rememberRing(store, ring)
      atEnd(t, () => store.close())
      return { store, advance: (byMs: number) => moveClock(clock, byMs), reopen: open }
    }
  },
})
