/** Where to connect to: the host of a relay, or an address of it where the addresses matter. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isInternal, isPrivateAddress } from '../../../dns/private-address.ts'
import { newPublicLookup, PrivateAddress } from '../../../dns/public-lookup.ts'
import { isLoopback } from '../../../domain/client-network.ts'
import { noReply } from '../../../domain/delivery/reply.ts'
import type { SmtpFailure } from '../../../domain/delivery/smtp-reply.ts'

/** The resolvers that look the name up; null for those of the machine. */
export type PublicOnly = { readonly dnsServers: readonly string[] | null }

type Place = {
  readonly host: string
  /** Whether all its addresses must be private. */
  readonly isPrivate: boolean
  readonly publicOnly?: PublicOnly
}

export async function findAddress(
  { host, isPrivate, publicOnly }: Place,
  signal: AbortSignal,
): Promise<string | SmtpFailure> {
  if (isPrivate) return findPrivate(host)
  return publicOnly === undefined ? host : findPublic(host, publicOnly, signal)
}

const fail = (text: string, errorCode: string): SmtpFailure => ({ stage: 'connect', reply: noReply(text), errorCode })

/** Every address must be private. */
async function findPrivate(host: string): Promise<string | SmtpFailure> {
  try {
    const addresses = (await lookup(host, { all: true })).map(({ address }) => address)
    const stray = addresses.find((address) => !isInternal(address) && !isLoopback(address))
    if (stray === undefined) return addresses[0] ?? fail(`ENOTFOUND: ${host} has no address`, 'EDNS')
    // As for a bad certificate: nothing is sent until an operator acts.
    return fail(`${host} has the address ${stray}, which is not private: leave out tls=none`, 'ETLS')
  } catch (error) {
    return fail((error as Error).message, 'EDNS')
  }
}

const notPublic = 'not on the public Internet'

async function findPublic(
  host: string,
  { dnsServers }: PublicOnly,
  signal: AbortSignal,
): Promise<string | SmtpFailure> {
  if (isIP(host) !== 0) return isPrivateAddress(host) ? fail(`${host} is ${notPublic}`, 'ETLS') : host
  const { promise, resolve } = Promise.withResolvers<string | SmtpFailure>()
  const giveUp = () => resolve(fail('ETIMEDOUT: no session in time', 'ETIMEDOUT'))
  signal.addEventListener('abort', giveUp, { once: true })
  newPublicLookup(dnsServers)(host, {}, (error, address) => {
    if (error === null && typeof address === 'string') resolve(address)
    else if (error instanceof PrivateAddress) resolve(fail(`the addresses of ${host} are ${notPublic}`, 'ETLS'))
    else resolve(fail(`${error?.code ?? 'ENOTFOUND'}: no address of ${host} was found`, 'EDNS'))
  })
  return promise.finally(() => signal.removeEventListener('abort', giveUp))
}
