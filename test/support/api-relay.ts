/** Relays that are mail APIs, at servers of a test. */
import type { RelayConfig } from '../../src/config/relays.ts'
import type { Submission } from '../../src/delivery/relay/relay.ts'
import type { ApiAccount } from '../../src/services/mail-api.ts'
import { type Answering, localCa, sendJson, startApiServer } from './api-server.ts'
import { newTestRelay } from './service.ts'
import { testMessage } from './smtp.ts'
import type { Scope } from './temporary.ts'

const oauth = (tokenUrl: string) => ({
  ...{ tokenUrl, clientId: 'c', scope: null },
  grant: { kind: 'secret', secret: 'the-client-secret' } as const,
})

export type Provider = ApiAccount['provider']
export const accounts: { readonly [name in Provider]: (tokenUrl: string) => ApiAccount } = {
  graph: (url) => ({ provider: 'graph', mailbox: 'no-reply@acme.test', oauth: oauth(url) }),
  gmail: (url) => ({ provider: 'gmail', mailbox: 'no-reply@acme.test', oauth: oauth(url) }),
  ses: () => ({
    ...{ provider: 'ses', region: 'eu-west-1', keyId: 'AKID', secret: 'the-secret-key' },
    configurationSet: 'main',
    keepsSender: false,
  }),
  resend: () => ({ provider: 'resend', key: 're_secret_key' }),
  postmark: () => ({ provider: 'postmark', token: 'postmark-token', stream: 'outbound' }),
}
export const providers = Object.keys(accounts) as Provider[]

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
    address: {
      protocol: 'https',
      account: accounts[provider](tokens.url),
      endpoint: server.url,
      ...(tls && { ca: localCa }),
    },
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
