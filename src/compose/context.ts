/** The values that all parts of a service share. */
import type { Config } from '../config/parse-config.ts'
import type { WebhookWriter } from '../delivery/webhooks/webhook-writer.ts'
import type { EventStream } from '../observe/events.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Queueing } from '../observe/queueing.ts'
import type { Store } from '../store/store.ts'

/** `curl`: a line that sends an email, with the key of the demo app. */
export type Hints = { curl: string | null }

export type ServiceContext = {
  readonly config: Config
  readonly store: Store
  readonly events: EventStream
  readonly metrics: Metrics
  readonly queueing: Queueing
  /** How many log lines were lost since the start. */
  readonly linesLost: () => number
  readonly webhooks: WebhookWriter
  readonly random: () => number
  /** Examples that pages of dev mode show. */
  readonly hints: Hints
  /** The version of Postern. */
  readonly version: string
  /** True from when all parts have started until the service is asked to stop. */
  readonly isReady: () => boolean
  /** True once requests are refused. */
  readonly isStopping: () => boolean
  /** Whether an address may be that of a reverse proxy, which carries all clients in its connections. */
  readonly isProxy: (address: string) => boolean
}
