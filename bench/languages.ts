/**
 * The cost of languages: accepting and draining with no `locale`, with one, and with all of them in turn; and
 * the memory of the message forms of 100 apps in all of them.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MessageComposer } from '../src/delivery/message/compose-message.ts'
import type { Reference } from '../src/domain/delivery/reference.ts'
import { type AppId, newId } from '../src/domain/id.ts'
import type { EmailAddress } from '../src/domain/request/email-address.ts'
import { languageTags as languages } from '../src/templates/locales/language-files.ts'
import { testSettings } from '../test/support/service.ts'
import type { Scope } from '../test/support/temporary.ts'
import { drainRound } from './drain.ts'
import { type Contender, count, interleave, report, standingsTable, type Table } from './measure.ts'
import { type Bed, engines, makeBed, startLoader, startPostern, startSink, subjectOf } from './processes.ts'

const roundMs = 3000
const rounds = 5
/** A form for each app and language of these, and no form for most of more. */
const fewApps = 20

export async function run(scope: Scope): Promise<void> {
  const ways = [
    ['no locale', []],
    ['one language', ['de']],
    [`${languages.length} languages`, languages],
  ] as const
  const load = startLoader(scope)
  const sink = await startSink(scope)
  const memory = measureForms() // before anything else has filled the heap
  const tables: Record<string, Table> = {
    'Message forms of 100 apps in every language': {
      columns: ['forms asked for', 'MB', 'µs a form and two emails'],
      rows: [[count(memory.forms), (memory.bytes / 1e6).toFixed(1), memory.us.toFixed(0)]],
    },
  }
  const measured: Record<string, unknown> = {}
  let serial = 0
  for (const engine of engines) {
    const bed = await makeBed(scope, subjectOf(engine))
    const { port } = await startPostern(scope, bed, { POSTERN_ROLES: 'api' })
    const accepting = ways.map(
      ([name, locales]): Contender => ({
        name,
        round: async () => {
          serial += 10_100_003 // new recipients in each round
          const order = {
            ports: [port],
            keys: bed.keys,
            locales,
            clients: 64,
            ms: roundMs,
            rate: null,
            serial,
          }
          return (await load(order)).perSecond
        },
      }),
    )
    const accepted = await interleave(accepting, rounds)
    const own = await makeBed(scope, subjectOf(engine))
    const drained = await interleave(drainers(own, `smtp://127.0.0.1:${sink.port}?connections=20`, ways), 3)
    tables[`Accepted on ${engine} with 64 clients`] = standingsTable('requests with', accepted)
    tables[`Drained on ${engine}`] = standingsTable('emails with', drained)
    measured[engine] = { accepted, drained }
  }
  report('languages', tables, { ...measured, memory })
}

const drainers = (bed: Bed, relay: string, ways: readonly (readonly [string, readonly string[]])[]): Contender[] =>
  [bed.keys.length, fewApps].flatMap((apps) =>
    ways.map(([name, locales]) => ({
      name: `${name}, ${apps} apps`,
      round: () => drainRound(bed, relay, { keys: bed.keys.slice(0, apps), locales }),
    })),
  )

/** The memory of a composer after two emails of each app and language: it makes a form at each second one. */
function measureForms() {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = () => {
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  // Reads the texts of all languages.
  for (const locale of languages) new MessageComposer().compose(newInput(newId('app', 0), locale))
  const composer = new MessageComposer()
  const apps = Array.from({ length: 100 }, () => newId('app', Date.now()))
  const before = used()
  const beganMs = performance.now()
  for (const id of apps) for (const locale of languages) for (const _ of [1, 2]) composer.compose(newInput(id, locale))
  const forms = apps.length * languages.length
  const us = ((performance.now() - beganMs) * 1000) / forms
  const bytes = used() - before
  composer.compose(newInput(newId('app', 0), 'en')) // it is still in use
  return { forms, bytes, us }
}

const newInput = (id: AppId, locale: string): Parameters<MessageComposer['compose']>[0] => ({
  claim: {
    type: 'magic_link',
    acceptedAt: Date.now(),
    ageMs: 0,
    expiresAt: Date.now() + 900_000,
    content: {
      to: 'ada@example.com' as EmailAddress,
      url: 'https://app.acme.test/auth?token=abc',
      messageIdDomain: 'acme.test',
      locale,
    },
  },
  reference: `${newId('em', Date.now())}.0123456789` as Reference,
  app: { id, version: 1, settings: testSettings, slug: 'acme' },
  lifeLeftMs: 900_000,
})
