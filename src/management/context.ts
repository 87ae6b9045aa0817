/** The parts of the service that operations use. */
import type { RelayAddress } from '../delivery/relay/relay-address.ts'
import type { KeyHash } from '../domain/app/delivery-key.ts'
import type { RelayTraits } from '../domain/delivery/relay-traits.ts'
import type { Lookup } from '../domain/dns/lookup.ts'
import type { AppId, EmailId } from '../domain/id.ts'
import type { SharedRead } from '../domain/remembered.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import type { LinkHost } from '../intake/judge-request.ts'
import type { Emit } from '../observe/events.ts'
import type { ReportDeps } from '../reports/record-report.ts'
import type { AppActivityRow } from '../store/activity-store.ts'
import type { SealedSecret } from '../store/auth-hook-store.ts'
import type { QueueSummary } from '../store/operator-store.ts'
import type { NewSigningKey, SigningKeyRecord } from '../store/signing-key-store.ts'
import type { Finding, Store } from '../store/store.ts'
import type { StoredTransport } from '../store/transport-store.ts'

/** The counts of the queue. `countedAt`: when states and apps were counted, in milliseconds since 1970. */
export type CountedQueue = QueueSummary & { readonly countedAt: number }

/** A key that signs, and whose record DNS lacks. `message` says why. */
export type MissingRecord = Pick<SigningKeyRecord, 'domain' | 'selector'> & { readonly message: string }

/** The relays of a transport, or what is wrong with them. `index`: of a relay. No text repeats a URL. */
export type OpenedTransport = {
  readonly relays: readonly { readonly name: string; readonly address: RelayAddress }[]
  readonly faults: readonly { readonly index: number | null; readonly text: string }[]
}

export type Management = {
  readonly store: Store
  readonly version: string
  readonly emit: Emit
  /** Mail was queued or made due. */
  readonly onQueued: () => void
  readonly queueMax: number
  /** The address of the console, without a slash at the end; null if there is none. */
  readonly consoleUrl: string | null
  readonly cursors: {
    /** `list` names a list and its filters: what is sealed opens for no other. */
    readonly seal: (list: string, id: string) => string
    /** Null for anything else than what was sealed for this list. */
    readonly open: (list: string, sealed: string) => string | null
  }
  readonly links: LinkHost

  // The inbox of test keys.
  /** Null if the key ring cannot open it. */
  readonly openInboxEmail: (email: EmailId, sealed: string) => string | null
  /** Whether the process is about to end, so that nothing should wait. */
  readonly isStopping: () => boolean

  // Counts and findings.
  readonly queue: { readonly get: () => Promise<CountedQueue> }
  /** The counts of every app in the last two hours, without the last `overMinutes`. */
  readonly past: SharedRead<readonly AppActivityRow[]>
  /** The reports of the last days. `lastAt`: the minute of the last one, in ms; null without one. */
  readonly reports: SharedRead<{
    readonly bounced: Record<string, number>
    readonly complained: number
    readonly lastAt: number | null
  }>
  readonly records: { readonly get: () => readonly MissingRecord[] }
  /** The checks of the database and the machine, for the status. */
  readonly findings: SharedRead<readonly Finding[]>
  /** Whether every relay answers. */
  readonly relays: SharedRead<readonly Finding[]>

  // Domains.
  /** Looks records of DNS up for one check, which is bounded as a whole. */
  readonly newLookup: () => Lookup
  readonly relayTraits: RelayTraits
  /**
   * Asks whether a link domain reaches this service. `isOurs`: a service with this key ring answered, and saw
   * the domain in the Host header. `status`: of the answer; null without one, which `why` then explains.
   */
  readonly probeLinkDomain: (
    domain: string,
  ) => Promise<{ readonly isOurs: boolean; readonly status: number | null; readonly why: string }>
  /** Makes a key pair that signs mail; the private key is sealed. */
  readonly makeSigningKey: (key: Pick<NewSigningKey, 'domain' | 'selector' | 'algorithm'>) => Promise<NewSigningKey>

  // Reports about emails.
  /** Each email gets a bounce address of its own from it; null for none. */
  readonly bounceAddress: EmailAddress | null
  /** `127.0.0.1:4024`, where this process takes reports by SMTP; null if it does not. */
  readonly bounceListener: string | null
  /** Where this process takes webhooks of mail providers; null if it does not. */
  readonly reportsListener: string | null
  /** Those whose calls can prove themselves there. */
  readonly reportProviders: readonly string[]

  /** The public address of the API, without a slash at the end; null if it is not known. */
  readonly apiUrl: string | null

  // Auth servers.
  /** The public address of the auth hooks listener, without a slash at the end; null if there is none. */
  readonly authHooksUrl: string | null
  /** `127.0.0.1:4025`, where this process listens for auth servers; null if it does not. */
  readonly authHooksListener: string | null
  /** How systems reach the submission listener; null if that is not known. */
  readonly submissionUrl: string | null
  /** Whether this process has a submission listener. */
  readonly takesSubmissions: boolean
  /** Seals the secret by which an auth server signs, for the hash of its key; the key is made without it. */
  readonly sealAuthHookSecret: (hash: KeyHash, secret: string) => string
  /** Whether the key ring has the key that sealed the secret. */
  readonly opensAuthHookSecret: (secret: SealedSecret) => boolean

  // Transports.
  readonly transports: {
    readonly read: (name: string, urls: readonly string[]) => OpenedTransport
    readonly seal: (name: string, urls: readonly string[]) => string
    readonly open: (stored: StoredTransport) => OpenedTransport
  }

  // Webhooks to apps.
  /** Whether webhooks may go into the private network, also by http. */
  readonly allowsPrivateWebhooks: boolean
  /** The secret that signs the webhooks of an app: in clear, and sealed. */
  readonly makeWebhookSecret: (app: AppId) => { readonly secret: string; readonly sealed: string }
  /** Seals the recipient of an email, for the webhook of its app. */
  readonly sealRecipient: ReportDeps['sealRecipient']
}
