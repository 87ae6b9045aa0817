/**
 * The part of a store in which processes record what they see: counts by the minute, refused requests, and
 * themselves. The rules of `store.ts` hold.
 */
import type { AppId, KeyId, NodeId } from '../domain/id.ts'
import type { ActivityRow } from '../domain/operator/activity.ts'
import type { NodeRecord } from '../domain/operator/node.ts'
import type { RefusedRequest } from '../domain/request/refused-request.ts'
import type { RefusalCode } from '../domain/request/rejection.ts'
import type { ListPage } from './operator-store.ts'

export type ActivityQuery = {
  /** Their counts are added up. Null: those of the whole service. */
  readonly apps: readonly AppId[] | null
  /** The first minute since 1970, and the one after the last. */
  readonly from: number
  readonly to: number
  /** Counts are added up over this many minutes. Apps have those of one minute for `appMinutesKept`. */
  readonly step: 1 | 60
}

/** The counts of an app and an event, with the first and the last minute that has some. */
export type AppActivityRow = {
  readonly app: AppId
  readonly event: ActivityRow['event']
  readonly count: number
  readonly first: number
  readonly last: number
}

/** `apps`: null for all. */
export type RefusalQuery = {
  readonly apps: readonly AppId[] | null
  /** Those of test keys alone. Otherwise the others; for a key or a recipient both. */
  readonly tests?: boolean
  readonly key?: KeyId
  readonly code?: RefusalCode
  /** The name that `nameRecipient` returns. */
  readonly recipient?: string
  /** Refused at this time or later, and before `until`. */
  readonly since?: number
  readonly until?: number
  /** Only those with a smaller request id. */
  readonly before?: string
  readonly limit: number
}

/** The checks of the service or of the domain of an app, the last backup and outages, the state of alerts. */
export type CheckSubject = 'service' | 'backup' | 'alerts' | 'outages' | AppId

export type KeptCheck = { readonly at: number; readonly result: unknown }

export interface ActivityStore {
  /** Adds to the counts; at most `stepMax` rows. */
  addActivity(rows: readonly ActivityRow[]): Promise<void>
  /** In the order of `minute`, which is that of the step's begin. */
  readActivity(query: ActivityQuery): Promise<readonly Omit<ActivityRow, 'app' | 'span'>[]>
  /** The counts of every app from a minute (since 1970), at most `appMinutesKept` ago, to before another. */
  readAppActivity(from: number, to: number): Promise<readonly AppActivityRow[]>
  /** Keeps the newest `refusalsMax` of each app. */
  addRefusals(refusals: readonly RefusedRequest[]): Promise<void>
  /** Newest first. */
  listRefusals(query: RefusalQuery): Promise<ListPage<RefusedRequest, string>>
  findRefusal(requestId: string): Promise<RefusedRequest | null>
  /** Keeps the last result about a subject. */
  keepCheck(subject: CheckSubject, result: unknown): Promise<void>
  /**
   * Keeps a result unless it was changed since `before` was read (null: there was none). False if it was: of
   * several processes, one succeeds.
   */
  swapCheck(subject: CheckSubject, before: unknown, after: unknown): Promise<boolean>
  /** Null if there was none in the last `keepDays`. */
  findCheck(subject: CheckSubject): Promise<KeptCheck | null>
  /**
   * Writes what a process says of itself; `seenAt` is the store's own time. Removes those that were not seen
   * for a day, and those that were last seen before this one started in their place, on the same machine with
   * the same roles.
   */
  noteNode(node: Omit<NodeRecord, 'seenAt'>): Promise<void>
  removeNode(id: NodeId): Promise<void>
  listNodes(): Promise<readonly NodeRecord[]>
}
