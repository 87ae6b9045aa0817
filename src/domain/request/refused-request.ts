/**
 * The record of a request that was refused. It has the origin of its link and the keyed hash of its
 * recipient, and nothing else of its content.
 */
import type { AppId, KeyId } from '../id.ts'
import type { RefusalCode } from './rejection.ts'

export type RefusedRequest = {
  readonly requestId: string
  readonly at: number
  readonly app: AppId
  readonly key: KeyId
  readonly code: RefusalCode
  /** Each fault as `field code`. */
  readonly issues: readonly string[]
  /** Scheme, host and port of the link; null if the request had none that can be read. */
  readonly origin: string | null
  /** The name of the recipient (`nameRecipient`); null if the request had none that is valid. */
  readonly recipient: string | null
}

/** How many refusals of an app are kept, and as many that were over a limit. */
export const refusalsMax = 100
export const allRefusalsMax = 2 * refusalsMax
