/** The address of a request's client, behind a reverse proxy or not. */
import type { IncomingHttpHeaders } from 'node:http'
import { isPrivateNetwork, toClientAddress } from '../../domain/client-network.ts'

export type ClientRequest = {
  readonly headers: IncomingHttpHeaders
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** Longer than any address with brackets and a port. */
const addressMax = 60

/**
 * If the connection comes from this machine or a private network, a proxy may be in front: then it is the
 * last address of `X-Forwarded-For`, which the nearest proxy has added.
 */
export function clientAddress(
  { headers, socket }: ClientRequest,
  isProxy: (address: string) => boolean = isPrivateNetwork,
): string {
  const peer = socket.remoteAddress ?? ''
  const forwarded = String(headers['x-forwarded-for'] ?? '')
  const last = forwarded
    .slice(forwarded.lastIndexOf(',') + 1)
    .slice(0, addressMax)
    .trim()
  return (isProxy(peer) ? toClientAddress(last) : null) ?? toClientAddress(peer) ?? peer
}
