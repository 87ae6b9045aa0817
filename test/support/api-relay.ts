/** Relays that are mail APIs, at servers of a test. */
import { parseRelayUrl } from '../../src/config/relay-url.ts'
import type { RelayConfig } from '../../src/config/relays.ts'
import type { Submission } from '../../src/delivery/relay/relay.ts'
import { type Answering, localCa, sendJson, startApiServer } from './api-server.ts'
import { newTestRelay } from './service.ts'
import { testMessage } from './smtp.ts'
import type { Scope } from './temporary.ts'

export const providers = ['graph', 'gmail', 'ses', 'resend', 'postmark'] as const
export type Provider = (typeof providers)[number]

/** By scheme: a URL without the options that all have. */
const urls: Readonly<Record<Provider, string>> = {
  graph: 'graph://no-reply@acme.test?client=c&secret=the-client-secret',
  gmail: 'gmail://no-reply@acme.test?client=c&secret=the-client-secret',
  ses: 'ses://AKID:the-secret-key@eu-west-1?set=main',
  resend: 'resend://re_secret_key@api.resend.com?',
  postmark: 'postmark://postmark-token@api.postmarkapp.com?',
}

/** As the URL of a relay says it, at a server of the test. */
export function newApiAddress(provider: Provider, endpoint: string, tokenUrl = 'http://127.0.0.1:1/token') {
  const oauth = provider === 'graph' || provider === 'gmail' ? `&oauth=${tokenUrl}` : ''
  const { relay, faults } = parseRelayUrl(`${urls[provider]}&endpoint=${endpoint}${oauth}`)
  if (relay?.address.protocol !== 'https') throw new Error(faults.join('; '))
  return relay.address
}

export const accepting: { readonly [name in Provider]: (response: Parameters<Answering>[1]) => void } = {
  graph: (response) => void response.writeHead(202).end(),
  gmail: (response) => sendJson(response, 200, { id: 'g1' }),
  ses: (response) => sendJson(response, 200, { MessageId: 's1' }),
  resend: (response) => sendJson(response, 200, { id: 'r1' }),
  postmark: (response) => sendJson(response, 200, { ErrorCode: 0, MessageID: 'p1' }),
}

/** A relay at a server of the test; tokens are `token-1`, `token-2` …. */
export async function startApi(t: Scope, provider: Provider, answering: Answering, { tls = false } = {}) {
  const tokens = await startApiServer(t, (_asked, response, count) =>
    sendJson(response, 200, { access_token: `token-${count}`, token_type: 'bearer', expires_in: 3600 }),
  )
  const server = await startApiServer(t, answering, { tls })
  const config: RelayConfig = {
    name: provider,
    address: { ...newApiAddress(provider, server.url, tokens.url), ...(tls && { ca: localCa }) },
    connectionsMax: 5,
    rate: null,
    takesReserved: true,
  }
  return { ...server, server, tokens, config }
}

const describeTest = {
  ...{ subject: 's', html: 'h', text: 't', headers: [], replyTo: null },
  from: { name: 'A', address: 'a@b.c' },
}

/** Submits one message, and closes the relay. */
export const submit = (config: RelayConfig, lifeMs?: number) => submitTo(newTestRelay(config), lifeMs)

export function submitTo(relay: ReturnType<typeof newTestRelay>, lifeMs = 60_000): Promise<Submission> {
  const message = testMessage({ describe: () => describeTest as never })
  const clearance = { deadlineMs: performance.now() + lifeMs, isLeaseValid: () => true }
  return relay.submit(message, clearance).finally(() => relay.close())
}

/** The end of a submission, with the flags of a failure. */
export const describeSubmission = (submission: Submission): string => {
  if (submission.kind !== 'failed') return submission.kind
  const { ambiguous, lasting, permanent, retryAfterMs, scope } = submission.failureClass
  const flags = [
    lasting && 'lasting',
    permanent && 'permanent',
    ambiguous && 'ambiguous',
    retryAfterMs !== null && `wait ${retryAfterMs}`,
  ]
  return [scope, ...flags.filter(Boolean)].join(' ')
}
