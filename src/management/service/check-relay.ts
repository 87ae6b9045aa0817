/** Checks that a relay answers, and accepts the credentials, a sender and a recipient. Sends no email. */
import { ApiClient } from '../../delivery/relay/http/api-client.ts'
import { TokenFault } from '../../delivery/relay/oauth/token-source.ts'
import { type ApiAddress, findOAuth, type RelayAddress } from '../../delivery/relay/relay-address.ts'
import { leavesInClear, newTokens, type SmtpAddress, withGreetingName } from '../../delivery/relay/smtp/connect.ts'
import { SmtpSession } from '../../delivery/relay/smtp/smtp-session.ts'
import type { App } from '../../domain/app/app.ts'
import { chooseEnvelopeSender, chooseSenders, type Senders } from '../../domain/app/envelope.ts'
import { retryForHours } from '../../domain/bounds.ts'
import { namesGreeting } from '../../domain/delivery/blame.ts'
import { inClear } from '../../domain/delivery/relay-state.ts'
import { noReply, type Reply } from '../../domain/delivery/reply.ts'
import { describeDuration } from '../../domain/duration.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import { withAdvice } from '../../services/advice.ts'
import { describeProxies } from '../../services/proxies.ts'
import type { Finding } from '../../store/store.ts'

const relayMs = 30_000

export type CheckedRelay = { readonly name: string; readonly address: RelayAddress }

/** The addresses of one app, which the check names as sender and recipient. */
type Sample = Senders & { readonly to: EmailAddress }

export type RelayChecks = {
  /** The first active one is the sender. */
  readonly apps: readonly App[]
  readonly bounceAddress: EmailAddress | null
  /** Whether emails go to the dev inbox instead of a relay. */
  readonly captures: boolean
  /** Why processes send nothing through a relay now, by its name. */
  readonly down?: ReadonlyMap<string, string>
}

/** The relays of the service, and the proxies of this process. */
export async function checkRelays(relays: readonly CheckedRelay[], settings: RelayChecks): Promise<Finding[]> {
  const proxies = describeProxies()
  const ofProxies = proxies === null ? [] : [{ check: 'proxy', ok: true, detail: proxies }]
  if (relays.length > 0) return [...(await checkEach(relays, settings)), ...ofProxies]
  const { captures } = settings
  const detail = captures
    ? 'the dev inbox captures every email'
    : 'not checked, because this process knows none: give it the POSTERN_SMTP_URL of the processes that send, or run the checks where they run'
  return [{ check: 'relays', ok: captures, detail }, ...ofProxies]
}

export function checkEach(
  relays: readonly CheckedRelay[],
  { apps, bounceAddress, down = new Map() }: Omit<RelayChecks, 'captures'>,
): Promise<Finding[]> {
  const app = apps.find(({ status }) => status === 'active')
  const sample = app === undefined ? null : makeSample(app, bounceAddress)
  return Promise.all(relays.map(async (relay) => judgeDown(await checkRelay(relay, sample), down.get(relay.name))))
}

/** A relay that answers a probe may still refuse all mail. */
const judgeDown = (finding: Finding, reason: string | undefined): Finding =>
  reason === undefined || !finding.ok
    ? finding
    : { ...finding, ok: false, detail: `${finding.detail}. But no mail is sent through it now: ${withAdvice(reason)}` }

const makeSample = ({ settings }: App, bounceAddress: EmailAddress | null): Sample => ({
  ...chooseSenders(settings, bounceAddress),
  to: settings.from.address as EmailAddress,
})

/** @param sample without one, only the connection and the login are checked */
export async function checkRelay({ name, address }: CheckedRelay, sample: Sample | null = null): Promise<Finding> {
  const { ok, text } = await (address.protocol === 'smtp' ? checkServer(address, sample) : checkApi(name, address))
  const consequence = `Nothing is sent through this relay until that is fixed; emails wait until their links expire, ${retryForHours} hours at most`
  return { check: `relay ${name}`, ok, detail: ok ? text : `${withAdvice(text)}. ${consequence}` }
}

type Checked = { readonly ok: boolean; readonly text: string }

async function checkServer(given: SmtpAddress, sample: Sample | null): Promise<Checked> {
  const address = sample === null ? given : withGreetingName(given, sample.to)
  const tokens = newTokens(address)
  const session = await SmtpSession.open(address, AbortSignal.timeout(relayMs), tokens)
  if (!(session instanceof SmtpSession)) return { ok: false, text: describeRefusal(session.reply, address) }
  const refusal =
    sample === null
      ? null
      : await session.probeEnvelope(chooseEnvelopeSender(sample, address.keepsSender), sample.to, relayMs)
  session.quit()
  if (refusal?.isOfRelay) return { ok: false, text: describeRefusal(refusal.reply, address) }
  const said = refusal === null ? '' : `. It refused a probe from and to the app’s own address: “${refusal.reply.text}”`
  const how = leavesInClear(address) ? inClear : address.tls === 'none' ? 'without TLS (loopback)' : 'over verified TLS'
  const login = address.credentials === null ? '' : ` and ${describeProof(address, tokens?.leftMs ?? 0)}`
  return { ok: true, text: `answers ${how}${login}${said}` }
}

const describeRefusal = ({ text }: Reply, { greetingName }: SmtpAddress): string =>
  namesGreeting(text) ? `${text} (the name in EHLO was ${greetingName})` : text

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
