/**
 * Looks up public addresses alone. Not by the system's resolver: a name whose server does not answer would
 * keep one of its few threads, which the look-ups of all other connections of the process need.
 */
import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { isPrivateAddress } from './private-address.ts'

/** All addresses of a name are private. */
export class PrivateAddress extends Error {}

/** @param dnsServers null for the resolvers of the machine */
export const newPublicLookup =
  (dnsServers: readonly string[] | null): LookupFunction =>
  (host, options, done) => {
    const resolver = new Resolver({ timeout: 2000, tries: 2 })
    if (dnsServers !== null) resolver.setServers(dnsServers)
    const both = [resolver.resolve4(host), resolver.resolve6(host)] as const
    void Promise.allSettled(both).then(([four, six]) => {
      const found = [
        ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
        ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
      ]
      const open = found.filter(({ address }) => !isPrivateAddress(address))
      const [first] = open
      if (first === undefined && four.status === 'rejected' && found.length === 0) return done(four.reason, '')
      if (first === undefined) return done(new PrivateAddress(), '')
      if (options.all) return (done as (error: null, found: LookupAddress[]) => void)(null, open)
      done(null, first.address, first.family)
    })
  }
