/**
 * The cost of signatures (DKIM): draining without keys, with RSA, with Ed25519, and with both; and the time
 * of the main thread for each message, whose signature is made in the thread pool.
 */
import { generateKeyPairSync } from 'node:crypto'
import { threadCpuUsage } from 'node:process'
import { composeMessage } from '../src/delivery/message/compose-message.ts'
import { type Signer, signMessage } from '../src/delivery/message/sign-message.ts'
import type { Reference } from '../src/domain/delivery/reference.ts'
import type { SigningAlgorithm } from '../src/domain/delivery/signing-key.ts'
import { newId } from '../src/domain/id.ts'
import type { EmailAddress } from '../src/domain/request/email-address.ts'
import { parseKeyRing } from '../src/store/crypto/key-ring.ts'
import { makeSigningKey } from '../src/store/crypto/signing-key.ts'
import { operator } from '../test/support/operator.ts'
import { testSettings } from '../test/support/service.ts'
import type { Scope } from '../test/support/temporary.ts'
import { drainRound } from './drain.ts'
import { type Contender, interleave, report, standingsTable, type Table } from './measure.ts'
import { type Bed, engines, makeBed, startSink, subjectOf, useStore } from './processes.ts'

const ways: readonly (readonly [string, readonly SigningAlgorithm[]])[] = [
  ['no key', []],
  ['RSA', ['rsa']],
  ['Ed25519', ['ed25519']],
  ['both', ['rsa', 'ed25519']],
]
const rounds = 3
const connections = 20
const messages = 5000

export async function run(scope: Scope): Promise<void> {
  const sink = await startSink(scope)
  const rows: string[][] = []
  for (const [name, algorithms] of ways.slice(1)) rows.push([name, (await measureThread(algorithms)).toFixed(4)])
  const tables: Record<string, Table> = {
    'Main thread, for each message': { columns: ['keys', 'ms'], rows },
  }
  const measured: Record<string, unknown> = {}
  for (const engine of engines) {
    const contenders = await Promise.all(
      ways.map(async ([name, algorithms]): Promise<Contender> => {
        const bed = await makeBed(scope, subjectOf(engine))
        await addKeys(bed, algorithms)
        return {
          name,
          round: () => drainRound(bed, `smtp://127.0.0.1:${sink.port}?connections=${connections}`),
        }
      }),
    )
    const standings = await interleave(contenders, rounds)
    tables[`Sent over ${connections} connections on ${engine}`] = standingsTable('keys', standings)
    measured[engine] = standings
  }
  report('signing', tables, measured)
}

const addKeys = (bed: Bed, algorithms: readonly SigningAlgorithm[]): Promise<void> =>
  useStore(bed, async (store) => {
    const parsed = parseKeyRing(bed.env.POSTERN_SECRET_KEYS ?? '')
    const [app] = await store.listApps()
    if ('fault' in parsed || app === undefined) throw new Error('the bed has no ring or no app')
    for (const algorithm of algorithms) {
      const name = { domain: 'acme.test', selector: algorithm }
      const key = await makeSigningKey(parsed.ring, { ...name, algorithm })
      await store.addSigningKey({ ...key, app: app.id }, operator)
      await store.activateSigningKey({ ...name, app: app.id }, operator)
    }
  })

/** Milliseconds of the main thread for the signatures of one message. */
async function measureThread(algorithms: readonly SigningAlgorithm[]): Promise<number> {
  const signers = algorithms.map((algorithm): Signer => {
    const { privateKey } =
      algorithm === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ed25519')
    return { domain: 'acme.test', selector: algorithm, algorithm, key: privateKey }
  })
  const bytes = composeMessage({
    claim: {
      ...{ type: 'magic_link', acceptedAt: Date.now(), ageMs: 0, expiresAt: Date.now() + 900_000 },
      content: {
        to: 'ada@example.com' as EmailAddress,
        ...{ url: 'https://app.acme.test/auth?token=abc', messageIdDomain: 'acme.test' },
      },
    },
    reference: `${newId('em', 0)}.0123456789` as Reference,
    app: { id: newId('app', 0), version: 1, slug: 'acme', settings: testSettings },
    lifeLeftMs: 900_000,
  })
  const sign = () => signMessage(bytes, signers, { signedAt: 0, expiresAt: 900, relayDates: false })
  for (let n = 0; n < 200; n++) await sign()
  const before = threadCpuUsage()
  for (let n = 0; n < messages; n++) await sign()
  const { system, user } = threadCpuUsage(before)
  return (system + user) / 1000 / messages
}
