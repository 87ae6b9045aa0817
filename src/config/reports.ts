/** Where reports about emails go that a relay has taken, and where they come in. */

import { bounceLocalMax, fitsReference } from '../domain/delivery/reference.ts'
import { formatHostPort } from '../domain/host-port.ts'
import { type EmailAddress, parsePlainAddress } from '../domain/request/email-address.ts'
import { type EventKey, parseEventKeys, provenServices } from '../services/event-keys.ts'
import type { SmtpAddress } from '../smtp/smtp-listener.ts'
import type { ListenAddress } from '../web/http/listener.ts'
import { readAddress } from './listeners.ts'
import type { Reader } from './reader.ts'
import { readGivenSecret } from './secrets.ts'
import { readTlsFiles } from './tls-files.ts'

export type ReportsConfig = {
  /** Each email gets a bounce address of its own from it; null for none. */
  readonly bounceAddress: EmailAddress | null
  /** Where reports come in by SMTP; null if this process takes none. */
  readonly bounce: SmtpAddress | null
  /** Where webhooks of mail providers come in; null if this process takes none. */
  readonly reports: { readonly address: ListenAddress; readonly keys: readonly EventKey[] } | null
}

/** @param options.listens whether the process has the role `reports` */
export function readReports(reader: Reader, { listens }: { readonly listens: boolean }): ReportsConfig {
  const isOn = reader.isSet(listenName)
  const bounce = isOn
    ? { address: readAddress(reader, listenName), tls: readTlsFiles(reader, 'POSTERN_BOUNCE_TLS') }
    : null
  return {
    bounceAddress: readBounceAddress(reader),
    bounce: listens ? bounce : null,
    reports: listens ? readProviderCalls(reader) : null,
  }
}

/**
 * A command only shows these settings. It may not be allowed to read the keys, so their faults are ignored.
 */
function readProviderCalls(given: Reader): ReportsConfig['reports'] {
  const isDescribed = given.mode === 'command'
  const reader = isDescribed ? { ...given, fault: () => {}, required: given.text } : given
  if (!reader.isSet(reportsListenName)) return null
  return { address: readAddress(given, reportsListenName), keys: readKeys(reader) }
}

function readKeys({ fault, required }: Reader): readonly EventKey[] {
  const name = 'POSTERN_REPORTS_KEYS'
  const given = required(name)
  const text = given === '' ? '' : readGivenSecret(given, name, fault)
  if (text === '') return []
  const { keys, faults } = parseEventKeys(text)
  for (const each of faults) fault(`${name}: ${each}`)
  return keys
}

/** As the management operations show them. */
export const describeReports = ({ bounceAddress, bounce, reports }: ReportsConfig) => ({
  bounceAddress,
  bounceListener: bounce && formatHostPort(bounce.address),
  reportsListener: reports && formatHostPort(reports.address),
  reportProviders: reports === null ? [] : provenServices(reports.keys).map(({ name }) => name),
})

const listenName = 'POSTERN_BOUNCE_LISTEN'
const reportsListenName = 'POSTERN_REPORTS_LISTEN'

function readBounceAddress({ fault, text }: Reader): EmailAddress | null {
  const name = 'POSTERN_BOUNCE_ADDRESS'
  const given = text(name)
  if (given === '') return null
  const address = parsePlainAddress(given, name)
  if (!address.ok) fault(`${name} must be an address such as bounces@bounce.example.com`)
  else if (!fitsReference(given)) fault(`${name}: at most ${bounceLocalMax} characters in front of the @`)
  return address.ok ? address.value : null
}
