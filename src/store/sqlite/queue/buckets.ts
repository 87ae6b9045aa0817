/**
 * The rate-limit buckets: in memory, and in a journal of one row for each transaction. With a row for each
 * bucket, nearly every bucket of a recipient would change a page of its own, because its name is a hash, and
 * pages are what a commit costs. The journal is read when the writer starts, and after another process has
 * written. Its rows are deleted when their buckets have refilled.
 *
 * Memory is bounded. A bucket that finds no place stands in the table `rate_bucket`. A bucket in memory has
 * an arrival time at least as late as its row there.
 */

import type { KeyedHash } from '../../crypto/key-ring.ts'
import { callerBucket, type RecipientNames } from '../../shared/bucket-names.ts'
import type { Caller } from '../../store.ts'
import type { Connection } from '../engine/connection.ts'
import { ArrivalTable } from './arrival-table.ts'

/**
 * A bucket is known by 48 bits of a keyed hash. Among 786,432 buckets in memory, a new one is taken for
 * another with a probability of 3 in 10^9, and then starts with what that one has counted.
 */
export type Bucket = number

/** The buckets of one mailbox differ in their last 16 bits, so that they are neighbours in `rate_bucket`. */
const suffixes = 2 ** 16

const toBytes = (hash: string): Buffer => Buffer.from(hash, 'base64url')

/** The first 32 bits of a hash, followed by 16 bits. Never 0. */
const toBucket = (hash: string, suffix: number): Bucket =>
  (1 + toBytes(hash.slice(0, 8)).readUInt32BE()) * suffixes + suffix

export const findCallerBucket = (keyedHash: KeyedHash, caller: Caller): Bucket => {
  const hash = keyedHash('key', callerBucket(caller))
  return toBucket(hash, toBytes(hash.slice(8, 12)).readUInt16BE())
}

export function recipientBuckets({ mailbox, address }: Pick<RecipientNames, 'mailbox' | 'address'>): {
  readonly mailbox: Bucket
  readonly address: Bucket
} {
  const own = toBytes(mailbox.slice(8, 12)).readUInt16BE()
  const suffix = toBytes(address.slice(mailbox.length)).readUInt16BE()
  return { mailbox: toBucket(mailbox, own | 1), address: toBucket(mailbox, suffix & ~1) }
}

/** 16 MiB, for 786,432 buckets; after a restart with more than half as many, twice that. */
const slotsMax = 2 ** 20

type Charge = readonly [bucket: Bucket, arrivalUs: number]

/** A row that a transaction has written to the journal, for `keep` after its commit. */
export type Journaled = { readonly id: number; readonly charged: readonly Charge[] }

export class Buckets {
  readonly #arrivals = new ArrivalTable()
  readonly #slotsMax: number
  /** The newest row of the journal that memory holds. */
  #lastId = 0

  constructor(slots: number = slotsMax) {
    this.#slotsMax = slots
  }

  /** Reads what other processes, or an earlier one, have journaled since the last call. */
  catchUp(connection: Connection, nowUs: number): void {
    const rows = connection
      .sql('select id, until_us, charged from bucket_journal where id > ? order by id')
      .iterate(this.#lastId)
    for (const { id, until_us, charged } of rows) {
      this.#lastId = Number(id)
      if (Number(until_us) <= nowUs) continue
      const buckets = decode(charged as Uint8Array)
      // All of them find a place: they had one in the memory of the process that wrote them.
      this.#arrivals.makeRoom(buckets.length, nowUs, Number.POSITIVE_INFINITY)
      for (const [bucket, arrivalUs] of buckets) this.#arrivals.set(bucket, arrivalUs)
    }
  }

  /** The arrival time of a bucket in memory, 0 for another one. */
  arrivalUs(bucket: Bucket): number {
    return this.#arrivals.get(bucket)
  }

  /** Writes what a transaction has charged. Call `keep` with the result after the commit. */
  write(connection: Connection, charged: readonly Charge[], nowUs: number): Journaled | null {
    const hasRoom = this.#arrivals.makeRoom(charged.length, nowUs, this.#slotsMax)
    const journaled = hasRoom ? charged : charged.filter(([bucket]) => this.#arrivals.get(bucket) > 0)
    if (!hasRoom) {
      const statement = connection.sql('insert or replace into rate_bucket (bucket, arrival_us) values (?, ?)')
      for (const [bucket, arrivalUs] of charged) if (this.#arrivals.get(bucket) === 0) statement.run(bucket, arrivalUs)
    }
    if (journaled.length === 0) return null
    const untilUs = Math.max(...journaled.map(([, arrivalUs]) => arrivalUs))
    const { lastInsertRowid } = connection
      .sql('insert into bucket_journal (until_us, charged) values (?, ?)')
      .run(untilUs, encode(journaled))
    return { id: Number(lastInsertRowid), charged: journaled }
  }

  keep({ id, charged }: Journaled): void {
    this.#lastId = id
    for (const [bucket, arrivalUs] of charged) this.#arrivals.set(bucket, arrivalUs)
  }
}

/** Pairs of 64-bit numbers. */
const encode = (charged: readonly Charge[]): Uint8Array => new Uint8Array(new Float64Array(charged.flat()).buffer)

function decode(bytes: Uint8Array): readonly Charge[] {
  const numbers = new Float64Array(bytes.slice().buffer)
  return Array.from({ length: numbers.length / 2 }, (_, n) => [numbers[2 * n] ?? 0, numbers[2 * n + 1] ?? 0])
}
