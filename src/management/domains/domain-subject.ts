/** The properties of an app's mail that DNS must agree with. */

import { checkDomain, type DomainLine, type DomainSubject } from '../../dns/check-domain.ts'
import type { App } from '../../domain/app/app.ts'
import { chooseEnvelopeSender, chooseSenders, findBounceAddress, type Senders } from '../../domain/app/envelope.ts'
import type { RelayTraits } from '../../domain/delivery/relay-traits.ts'
import type { SigningKey } from '../../domain/delivery/signing-key.ts'
import { type EmailAddress, readDomain } from '../../domain/request/email-address.ts'
import type { Context } from '../operation/operation.ts'

export type DomainParts = Pick<Context, 'store' | 'newLookup' | 'relayTraits' | 'bounceAddress'>

/** The domain of an app's From address: its mail is signed for it, and judged by it. */
export const fromDomain = ({ settings }: App): string => readDomain(settings.from.address as EmailAddress)

export async function checkAppDomain(app: App, parts: DomainParts): Promise<readonly DomainLine[]> {
  const keys = await parts.store.listSigningKeys(fromDomain(app))
  return checkDomain(newSubject(app, keys, parts), parts.newLookup())
}

/** The domain of an app's mail, of its envelopes, and of the address that bounces go to. */
export function mailDomains(
  app: App,
  { bounceAddress, relayTraits }: Pick<DomainParts, 'bounceAddress' | 'relayTraits'>,
): Pick<DomainSubject, 'domain' | 'envelopeDomain' | 'bounceDomain'> {
  const bounce = findBounceAddress(app.settings, bounceAddress)
  return {
    domain: fromDomain(app),
    envelopeDomain: findEnvelopeDomain(chooseSenders(app.settings, bounceAddress), relayTraits),
    bounceDomain: bounce === null ? null : readDomain(bounce),
  }
}

function newSubject(app: App, keys: readonly SigningKey[], parts: DomainParts): DomainSubject {
  const { include, rewrites } = parts.relayTraits
  return {
    ...mailDomains(app, parts),
    // A relay that composes the message sends no signature of ours.
    keys: rewrites === 'all' ? [] : keys,
    include,
  }
}

const findEnvelopeDomain = (senders: Senders, { envelope }: RelayTraits): string | null =>
  envelope === 'relay' ? null : readDomain(chooseEnvelopeSender(senders, envelope === 'from'))
