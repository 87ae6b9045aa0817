/** Checks that a relay answers and takes the credentials. Sends no email. */
import { ApiClient } from '../../delivery/relay/http/api-client.ts'
import type { ApiAddress } from '../../delivery/relay/http/mail-api.ts'
import { TokenFault } from '../../delivery/relay/oauth/token-source.ts'
import { findOAuth, type RelayAddress } from '../../delivery/relay/relay-address.ts'
import { greetAs, newTokens, type SmtpAddress } from '../../delivery/relay/smtp/connect.ts'
import { SmtpSession } from '../../delivery/relay/smtp/smtp-session.ts'
import type { App } from '../../domain/app/app.ts'
import { retryForHours } from '../../domain/bounds.ts'
import { withAdvice } from '../../domain/delivery/relay-advice.ts'
import { noReply } from '../../domain/delivery/reply.ts'
import { describeDuration } from '../../domain/duration.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import type { Finding } from '../../store/store.ts'

const relayMs = 30_000

export type CheckedRelay = { readonly name: string; readonly address: RelayAddress }

/** `captures`: emails go to the dev inbox instead of a relay. `apps`: one of them sends. */
export async function checkRelays(
  relays: readonly CheckedRelay[],
  { apps, captures }: { readonly apps: readonly App[]; readonly captures: boolean },
): Promise<Finding[]> {
  const sender = apps.find(({ status }) => status === 'active')?.settings.from.address as EmailAddress
  if (relays.length > 0) return Promise.all(relays.map((relay) => checkRelay(relay, sender ?? null)))
  const detail = captures
    ? 'the dev inbox captures every email'
    : 'not checked, because this process knows none: give it the POSTERN_SMTP_URL of the processes that send, or run the checks where they run'
  return [{ check: 'relays', ok: captures, detail }]
}

/** @param sender the address of an app; without one, only the connection is checked */
export async function checkRelay(
  { name, address }: CheckedRelay,
  sender: EmailAddress | null = null,
): Promise<Finding> {
  const { ok, text } = await (address.protocol === 'smtp'
    ? checkServer(address, sender)
    : checkApi(name, address))
  const consequence = `Nothing is sent through this relay until that is fixed; emails wait until their links expire, ${retryForHours} hours at most`
  return { check: `relay ${name}`, ok, detail: ok ? text : `${withAdvice(text)}. ${consequence}` }
}

type Checked = { readonly ok: boolean; readonly text: string }

async function checkServer(given: SmtpAddress, sender: EmailAddress | null): Promise<Checked> {
  const address = sender === null ? given : greetAs(given, sender)
  const tokens = newTokens(address)
  const session = await SmtpSession.open(address, AbortSignal.timeout(relayMs), tokens)
  if (!(session instanceof SmtpSession)) return { ok: false, text: session.reply.text }
  const refusal = sender === null ? null : await session.refusesAll(sender)
  session.quit()
  if (refusal !== null) return { ok: false, text: refusal.text }
  const how = address.tls === 'none' ? 'without TLS (loopback)' : 'over verified TLS'
  const login = address.credentials === null ? '' : ` and ${describeProof(address, tokens?.leftMs ?? 0)}`
  return { ok: true, text: `answers ${how}${login}` }
}

async function checkApi(name: string, address: ApiAddress): Promise<Checked> {
  const client = new ApiClient(name, address, 1)
  try {
    const { ok, text } = await client.check()
    if (!ok) return { ok, text }
    return { ok, text: `answers and ${describeProof(address, client.tokenLeftMs ?? 0)}` }
  } catch (error) {
    if (!(error instanceof TokenFault)) throw error
    return { ok: false, text: noReply(error.message).text }
  } finally {
    client.close()
  }
}

/** Enough to recognise the id of an application. */
const clientShownMax = 4

/** @param leftMs how long its token stays valid */
const describeProof = (address: RelayAddress, leftMs: number): string => {
  const oauth = findOAuth(address)
  if (oauth === null) return 'accepts the credentials'
  return `takes the token (client ${oauth.clientId.slice(0, clientShownMax)}…, ${describeDuration(leftMs)} left)`
}
