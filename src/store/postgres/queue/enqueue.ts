/** The decision on a group of requests: one call of `functions/enqueue.sql`, one transaction. */
import type { AppId, EmailId } from '../../../domain/id.ts'
import { limitRefusals } from '../../../domain/limit.ts'
import { sealContent } from '../../crypto/sealed-content.ts'
import { callerBucket, nameRecipientBuckets } from '../../shared/bucket-names.ts'
import { nameSuperseding, type RecentEmails } from '../../shared/recent-emails.ts'
import type { Caller, EnqueueRequest, EnqueueResult, Judged } from '../../store.ts'
import type { Lane, PostgresContext } from '../engine/context.ts'
import { calledFunction, sqlFunction } from './functions.ts'
import { finish } from './outcome.ts'

/** The key and app of a key hash never change, so they are cached without checks. */
export type EnqueueCall = { readonly request: EnqueueRequest; readonly caller: Caller }

/** One request, in positions of the arrays that hold each app, key and bucket once. */
type RequestRow = {
  readonly key: number
  readonly version: number | null
  readonly refusal: string | null
  readonly recipientBucket: number | null
  readonly mailboxBucket: number | null
  readonly requestKey: number | null
  readonly bodyHash: string | null
  readonly emailId: EmailId | null
  readonly type: string | null
  readonly expiresAt: number | null
  readonly recipient: string | null
  readonly traceparent: string | null
  readonly sealed: Buffer
  /** See `nameSuperseding`. */
  readonly superseding: string | null
}

type Group = {
  readonly context: PostgresContext
  readonly lane: Lane
  readonly apps: readonly AppId[]
  readonly keys: Positions
  readonly keyBuckets: readonly number[]
  readonly buckets: Positions
  readonly requestKeys: Positions
  readonly rows: readonly RequestRow[]
  readonly older: Older
}

const column =
  <Name extends keyof RequestRow>(name: Name) =>
  ({ rows }: Group) =>
    rows.map((row) => row[name])

/** Where the sealed content of each request begins in `p_sealed`; PostgreSQL counts from 1. */
function sealedFrom({ rows }: Group): number[] {
  let from = 1
  return rows.map(({ sealed }) => {
    from += sealed.length
    return from - sealed.length
  })
}

const nextArrival = sqlFunction('next_arrival')
const decide = sqlFunction('decide', [nextArrival])
const writeLimits = sqlFunction('write_limits')
const writeEmails = sqlFunction('write_emails')
const suppress = sqlFunction('suppress')
const supersede = sqlFunction('supersede', [finish])
const enqueue = calledFunction<Group>(
  'enqueue',
  [decide, suppress, supersede, writeLimits, writeEmails],
  [
    ['p_slot', 'int', ({ lane }) => lane.slot],
    ['p_queue_max', 'bigint', ({ context }) => context.queueMax],
    ['p_offset_ms', 'bigint', ({ context }) => context.clock.offsetMs],
    ['p_apps', 'text[]', ({ apps }) => apps],
    ['p_keys', 'text[]', ({ keys }) => keys.values],
    ['p_key_app', 'int[]', ({ keys }) => keys.apps],
    ['p_key_bucket', 'int[]', ({ keyBuckets }) => keyBuckets],
    ['p_buckets', 'text[]', ({ buckets }) => buckets.values],
    ['p_bucket_app', 'int[]', ({ buckets }) => buckets.apps],
    ['p_request_keys', 'text[]', ({ requestKeys }) => requestKeys.values],
    ['p_request_key_app', 'int[]', ({ requestKeys }) => requestKeys.apps],
    ['p_key', 'int[]', column('key')],
    ['p_version', 'bigint[]', column('version')],
    ['p_refusal', 'text[]', column('refusal')],
    ['p_recipient_bucket', 'int[]', column('recipientBucket')],
    ['p_mailbox_bucket', 'int[]', column('mailboxBucket')],
    ['p_request_key', 'int[]', column('requestKey')],
    ['p_body_hash', 'text[]', column('bodyHash')],
    ['p_email_id', 'text[]', column('emailId')],
    ['p_type', 'text[]', column('type')],
    ['p_expires_at', 'bigint[]', column('expiresAt')],
    ['p_recipient', 'text[]', column('recipient')],
    ['p_traceparent', 'text[]', column('traceparent')],
    ['p_sealed_from', 'int[]', sealedFrom],
    ['p_sealed_length', 'int[]', ({ rows }) => rows.map(({ sealed }) => sealed.length)],
    ['p_sealed', 'bytea', ({ rows }) => Buffer.concat(rows.map(({ sealed }) => sealed))],
    ['p_older', 'text[]', ({ older }) => older.ids],
    ['p_older_row', 'int[]', ({ older }) => older.rows],
  ],
)

export const enqueueFunctions = [nextArrival, decide, suppress, supersede, writeLimits, writeEmails, enqueue]

type Decision = {
  readonly kind: EnqueueResult['kind']
  readonly email_id: EmailId | null
  readonly quota: number
  readonly wait_us: number
  /** The ids of older emails that are cancelled, separated by spaces; null for none. */
  readonly superseded: string | null
}

/** Enqueues a group on one lane. `judge_again` comes without the app, which is read afterwards. */
export async function enqueueGroup(
  context: PostgresContext,
  lane: Lane,
  calls: readonly EnqueueCall[],
  deadlineMs: number,
): Promise<Decision[]> {
  const group = toGroup(context, lane, calls)
  const { text, values } = enqueue.call(context.schema, group)
  const decisions = await lane.connection.query<Decision>(text, values, { deadlineMs, strict: true })
  for (const [index, { kind, email_id }] of decisions.entries())
    if (kind === 'queued' && email_id !== null) lane.recent.add(group.rows[index]?.superseding ?? null, email_id)
  return decisions
}

export function toResult(decision: Decision, caller: Caller): Exclude<EnqueueResult, { kind: 'judge_again' }> {
  const { kind, email_id, quota, superseded, wait_us } = decision
  switch (kind) {
    case 'queued':
      return {
        kind,
        emailId: email_id as EmailId,
        superseded: (superseded?.split(' ') ?? []) as EmailId[],
        ...caller,
      }
    case 'suppressed':
    case 'replayed':
      return { kind, emailId: email_id as EmailId, ...caller }
    case 'key_rate_limited':
    case 'recipient_rate_limited':
    case 'daily_limit_reached': {
      const retryAfterMs = Math.ceil(wait_us / 1000)
      return { kind, limit: { quota, windowS: limitRefusals[kind].windowS, retryAfterMs }, ...caller }
    }
    case 'refused':
    case 'idempotency_key_reused':
    case 'queue_full':
      return { kind, ...caller }
    case 'invalid_key':
      return { kind }
    case 'judge_again':
      throw new Error('judge_again needs its app')
    default:
      return kind satisfies never
  }
}

/** Distinct values in the order of their first use. PostgreSQL counts positions from 1. */
class Positions {
  readonly #positions = new Map<string, number>()
  readonly values: string[] = []
  /** For each value, the position of its app. */
  readonly apps: number[] = []

  of(value: string, app: number): number {
    const known = this.#positions.get(value)
    if (known !== undefined) return known
    this.values.push(value)
    this.apps.push(app)
    this.#positions.set(value, this.values.length)
    return this.values.length
  }
}

/** The older emails that the rows may supersede, and their rows, from 1. */
type Older = { readonly ids: readonly EmailId[]; readonly rows: readonly number[] }

function findOlder(rows: readonly RequestRow[], recent: RecentEmails): Older {
  const older = rows.flatMap(({ superseding }, index) => recent.find(superseding).map((id) => ({ id, row: index + 1 })))
  return { ids: older.map(({ id }) => id), rows: older.map(({ row }) => row) }
}

const noBytes = Buffer.alloc(0)

function toGroup(context: PostgresContext, lane: Lane, calls: readonly EnqueueCall[]): Group {
  const apps = [...new Set(calls.map(({ caller }) => caller.appId))]
  const appPositions = new Map(apps.map((app, index) => [app, index + 1]))
  const [keys, buckets, requestKeys] = [new Positions(), new Positions(), new Positions()]
  const keyBuckets: number[] = []
  const rows = calls.map(({ request, caller }) => {
    const { appId } = caller
    const app = appPositions.get(appId) ?? 0
    const key = keys.of(caller.keyId ?? appId, app)
    keyBuckets[key - 1] ??= buckets.of(callerBucket(caller), app)
    const base = { key, version: request.judged?.version ?? null }
    const idempotency = request.judged?.idempotency ?? null
    return {
      ...base,
      ...verdictColumns(context, appId, {
        judged: request.judged,
        bucketOf: (name) => buckets.of(name, app),
      }),
      requestKey:
        idempotency === null ? null : requestKeys.of(context.keyedHash('idempotency', appId, idempotency.key), app),
      bodyHash: idempotency === null ? null : context.keyedHash('body', appId, idempotency.bodyDigest),
    }
  })
  const older = findOlder(rows, lane.recent)
  return { context, lane, apps, keys, keyBuckets, buckets, requestKeys, rows, older }
}

const noEmail = {
  refusal: null,
  recipientBucket: null,
  mailboxBucket: null,
  emailId: null,
  type: null,
  expiresAt: null,
  recipient: null,
  traceparent: null,
  sealed: noBytes,
  superseding: null,
}

type VerdictInput = { judged: Judged | null; bucketOf: (name: string) => number }

/** The columns that depend on the verdict. */
function verdictColumns({ keyedHash, ring }: PostgresContext, appId: AppId, { judged, bucketOf }: VerdictInput) {
  if (judged === null) return noEmail
  if ('refuse' in judged.verdict) return { ...noEmail, refusal: judged.verdict.refuse }
  const { admit } = judged.verdict
  const { id, type, expiresAt, content, traceparent } = admit
  const names = nameRecipientBuckets(keyedHash, appId, content.to)
  return {
    refusal: null,
    recipientBucket: bucketOf(names.address),
    mailboxBucket: bucketOf(names.mailbox),
    emailId: id,
    type,
    expiresAt,
    recipient: names.recipient,
    traceparent,
    sealed: sealContent(ring, id, content),
    superseding: nameSuperseding(names, admit),
  }
}
