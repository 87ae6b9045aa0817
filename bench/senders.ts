/** Apps and requests for benchmarks. Each request has a new recipient and a new `Idempotency-Key`. */
import { hashDeliveryKey, type KeyHash, newDeliveryKey } from '../src/domain/app/delivery-key.ts'
import { parseReply } from '../src/domain/delivery/smtp-reply.ts'
import { newId } from '../src/domain/id.ts'
import { defaultLimits } from '../src/domain/limit.ts'
import type { EmailAddress } from '../src/domain/request/email-address.ts'
import type { Claim, EnqueueRequest, Store } from '../src/store/store.ts'
import { newSender, testSettings } from '../test/support/service.ts'

/**
 * No benchmark reaches these limits. The one for recipients is the default: the store must remember its
 * buckets.
 */
const settings = {
  ...testSettings,
  limits: { ...defaultLimits, keyPerMinute: 6_000_000, daily: 1_000_000_000 },
}

/** An app's key; apps made here have settings of version 1. */
export type BenchSender = { readonly key: string; readonly keyHash: KeyHash }

const toSender = (key: string): BenchSender => ({ key, keyHash: hashDeliveryKey(key) })

export async function makeSenders(store: Store, howMany: number): Promise<BenchSender[]> {
  const made = await Promise.all(
    Array.from({ length: howMany }, (_, index) =>
      newSender({ store }, `bench-${index}-${Date.now().toString(36)}`, settings),
    ),
  )
  return made.map(({ key }) => toSender(key))
}

export const sendersOf = ({ keys }: { readonly keys: readonly string[] }): BenchSender[] => keys.map(toSender)

const recipients = 1_000_000
let serial = 0

/** The languages of emails, in turn, and whether they have a code. */
export type Variety = { readonly locales?: readonly string[]; readonly codes?: boolean }

function nextRequest(store: Store, { keyHash }: BenchSender, { locales = [], codes = false }: Variety): EnqueueRequest {
  const n = serial++
  const locale = locales[n % locales.length]
  const content = {
    to: `queued${n % recipients}@example.com` as EmailAddress,
    url: `https://app.acme.test/auth/magic?token=${newDeliveryKey().slice(4)}`,
    messageIdDomain: 'acme.test',
    ...(locale !== undefined && { locale }),
    ...(codes && { code: String(100_000 + (n % 900_000)) }),
  }
  return {
    keyHash,
    judged: {
      version: 1,
      verdict: {
        admit: {
          id: newId('em', store.now()),
          type: 'magic_link',
          expiresAt: store.now() + 86_400_000,
          traceparent: null,
          supersedeKey: null,
          content,
        },
      },
      idempotency: { key: `bench-${n}-${process.pid}`, bodyDigest: String(n) },
    },
  }
}

async function enqueueNext(store: Store, senders: readonly BenchSender[], variety: Variety): Promise<void> {
  const sender = senders[serial % senders.length]
  if (sender === undefined) throw new Error('no senders')
  const result = await store.enqueue(nextRequest(store, sender, variety))
  if (result.kind !== 'queued') throw new Error(`answered ${result.kind}`)
}

export async function enqueueMany(
  store: Store,
  senders: readonly BenchSender[],
  { emails, clients, ...variety }: { emails: number; clients: number } & Variety,
): Promise<void> {
  let left = emails
  const client = async () => {
    while (left-- > 0) await enqueueNext(store, senders, variety)
  }
  await Promise.all(Array.from({ length: clients }, client))
}

/** Records all claims as delivered; sends nothing. */
export async function deliverAll(store: Store, claims: readonly Claim[]): Promise<void> {
  const outcome = { kind: 'delivered', reply: parseReply('250 ok'), relay: 'bench' } as const
  await Promise.all(claims.map((claim) => store.recordOutcome(claim, outcome)))
}
