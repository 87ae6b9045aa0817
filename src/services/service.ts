/**
 * The contract of a mail service: one object in one file, with everything that Postern knows about it.
 *
 *     export const acme: MailService = {
 *       name: 'acme',
 *       title: 'Acme Mail',
 *       smtp: {
 *         hosts: ['smtp.acme.example'],
 *         traits: { rewrites: 'dates', envelope: 'relay', include: null },
 *         referenceHeader: (reference) => `X-Acme-Metadata: ${reference}`,
 *       },
 *       events: {
 *         proof: basic,
 *         read: ({ type, to, reason }) => describeEvent({ delivered: 'confirmed', bounce: bounced() }, type,
 *           { recipient: to, text: reason }),
 *       },
 *     }
 *
 * `services.ts` lists all of them. Every other list is derived from there, and no other file names one.
 */

import type { Reference } from '../domain/delivery/reference.ts'
import type { RelayTraits } from '../domain/delivery/relay-traits.ts'
import type { AccountRefusal } from '../domain/delivery/smtp-reply.ts'
import type { JsonFields } from '../services/json-fields.ts'
import type { Ask, BodyProof, Proof } from './event-proof.ts'
import type { MailApi } from './mail-api.ts'
import type { ServiceEvent } from './service-event.ts'

export type MailService = {
  /** In configuration, addresses, records and metrics: small letters and digits. */
  readonly name: string
  /** As people know it. */
  readonly title: string
  readonly smtp?: SmtpService
  readonly api?: ApiService
  /** Its server of access tokens (OAuth 2.0). */
  readonly tokens?: TokenServer
  /** Its webhooks about emails that it accepted. */
  readonly events?: ServiceEvents
  /** Tried in order, before the general advice. */
  readonly advice?: readonly Advice[]
}

/** A sentence for an operator, chosen by the words of a refusal. */
export type Advice = readonly [says: RegExp, advice: string]

/** The bounds of a relay unless its URL sets others. */
export type Bounds = {
  /** Null for the bound of all relays. */
  readonly connectionsMax: number | null
  /** Emails a second; null for the bound of all relays. */
  readonly rate: number | null
}

export type SmtpService = {
  readonly hosts: readonly (string | RegExp)[]
  readonly traits: RelayTraits
  readonly bounds?: Bounds
  /** It refuses every sender but the mailbox that signed in. */
  readonly keepsSender?: true
  /** The header line that its reports return, for a service that replaces Message-ID and envelope. */
  readonly referenceHeader?: (reference: Reference) => string
  readonly accountRefusal?: AccountRefusal
}

export type ApiService<Account = unknown> = {
  /** The scheme of its URLs, if it is not the name of the service. */
  readonly scheme?: string
  /** A URL without options, as errors show it. */
  readonly example: string
  /** The options of its URLs, besides those of all relays. */
  readonly options: readonly string[]
  readonly traits: RelayTraits
  readonly bounds?: Bounds
  /** The origin of the API, in which `{host}` is the host of the URL. */
  readonly endpoint: string
  /** The scope of its access tokens; without it, the API takes none. */
  readonly tokenScope?: (endpoint: string) => string
  /** The account in a URL. It reports what is wrong by `url.fault`. */
  readAccount(url: ServiceUrl): Account
  /** @param host the host of the requests */
  open(account: Account, host: string): MailApi
}

/** The URL of a relay, as a service reads it. */
export type ServiceUrl = {
  readonly host: string
  /** Null if it is not given. */
  option(name: string): string | null
  fault(text: string): void
  /** The user, which is the key of the API. It reports by `fault` what is no key. */
  key(): string
  /** User and host, which are an address. It reports by `fault` if there is none. */
  mailbox(): string
  /** Empty where they are missing. */
  credentials(): { readonly user: string; readonly password: string }
  /** Whether the sender of the envelope is the app's own address. */
  keepsSender(): boolean
}

export type TokenServer = {
  readonly tokenUrl: (tenant: string) => string
  /** It has one address for each tenant, which the option `tenant` names. */
  readonly hasTenants?: true
  readonly smtpScope: string
  /** The fault of a client secret that cannot be one; null for any other. */
  readonly faultOfSecret?: (secret: string) => string | null
}

export type ServiceEvents = {
  readonly proof: Proof
  /** Checked besides, if the operator gave a key for it. */
  readonly bodyProof?: BodyProof
  /** The events in a proven call, if its body is not an event or a list of them. */
  readonly open?: (body: JsonFields, ask: Ask) => Promise<unknown>
  /** Null for an event that says nothing about a delivery. */
  readonly read: (event: JsonFields) => ServiceEvent | null
}
