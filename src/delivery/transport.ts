/** The relays that send the mail of some apps, and how messages are signed for them. */
import type { DeliverDeps } from './deliver.ts'

export type Transport = Pick<DeliverDeps, 'relays' | 'signing'> & {
  /** Null for the relays of the service. */
  readonly name: string | null
}
