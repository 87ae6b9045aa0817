/** The link domains of apps: which are known, and whether one reaches this service. */
import type { Config } from '../config/parse-config.ts'
import { requestPublic } from '../delivery/public-request.ts'
import { keepCountsMs, SharedRead } from '../domain/remembered.ts'
import type { Management } from '../management/context.ts'
import { isReachProof, newNonce, proofPath } from '../store/crypto/reach-proof.ts'
import type { Store } from '../store/store.ts'

/** Remembered, because strangers ask as often as they like. */
export const newLinkDomains = (store: Pick<Store, 'listLinkDomains'>): SharedRead<ReadonlySet<string>> =>
  new SharedRead<ReadonlySet<string>>(async () => new Set(await store.listLinkDomains()), keepCountsMs)

export const newLinkDomainProbe =
  ({ allowsPrivateWebhooks, dnsServers, ring }: Config, version: string): Management['probeLinkDomain'] =>
  async (domain) => {
    const nonce = newNonce()
    const { result, status, text } = await requestPublic(
      {
        url: new URL(`https://${domain}${proofPath(nonce)}`),
        method: 'GET',
        headers: { 'user-agent': `Postern/${version}` },
        reads: (code) => code === 200,
      },
      { allowsPrivate: allowsPrivateWebhooks, dnsServers },
    )
    return { status, why: result, isOurs: isReachProof(ring, domain, nonce, text) }
  }
