/**
 * The grammar of a relay's URL: `smtp:` and `smtps:` for SMTP servers, and a scheme for each mail API. No
 * fault repeats any of it, since it may hold a password.
 */
import { readFileSync } from 'node:fs'
import type { RelayAddress } from '../delivery/relay/relay-address.ts'
import type { SmtpAddress } from '../delivery/relay/smtp/connect.ts'
import { isLoopback } from '../domain/client-network.ts'
import { findProvider, type RelayProvider, relayProviders } from '../domain/delivery/relay-provider.ts'
import type { ApiAccount } from '../services/mail-api.ts'
import { greetingForm, toGreetingName } from './greeting.ts'
import { isSafeUrl } from './listeners.ts'
import { decodePercent, urlEscapes } from './reader.ts'
import { oauthOptions, type RelayUrl, readOAuth } from './relay-oauth.ts'
import { readGivenSecret } from './secrets.ts'

export type ParsedRelay = {
  readonly address: RelayAddress
  /** Null for the bound of all relays. */
  readonly connectionsMax: number | null
  /** Emails a second; null for the bound of all relays. */
  readonly rate: number | null
  /** Whether it gets mail for domains that are reserved for tests. */
  readonly takesReserved: boolean
}

type Bounds = Pick<ParsedRelay, 'connectionsMax' | 'rate'>
const noBounds: Bounds = { connectionsMax: null, rate: null }

type Scheme = {
  readonly options: readonly string[]
  /** The URL without options, as faults show it. */
  readonly example: string
  readonly bounds?: Bounds
  readonly read: (given: RelayUrl) => RelayAddress | null
}

const example = 'smtp://user:password@host:587 or smtps://host'

/** Microsoft's limits for a mailbox. */
const microsoftBounds: Bounds = { connectionsMax: 3, rate: 0.5 }

const smtpOptions = ['envelope', 'name', 'provider', ...oauthOptions]

const schemes: Readonly<Record<string, Scheme>> = {
  smtp: { options: ['tls', ...smtpOptions], example, read: readSmtp },
  smtps: { options: smtpOptions, example, read: readSmtp },
  graph: {
    options: ['endpoint', ...oauthOptions],
    example: 'graph://mailbox@acme.com?tenant=T&client=ID&secret=file:PATH',
    bounds: microsoftBounds,
    read: (given) => readMailbox(given, 'graph', 'https://graph.microsoft.com'),
  },
  gmail: {
    options: ['endpoint', ...oauthOptions],
    example: 'gmail://mailbox@acme.com?key=file:PATH',
    read: (given) => readMailbox(given, 'gmail', 'https://gmail.googleapis.com'),
  },
  ses: {
    options: ['endpoint', 'set', 'envelope'],
    example: 'ses://KEYID:SECRET@eu-west-1',
    read: readSes,
  },
  resend: {
    options: ['endpoint'],
    example: 'resend://KEY@api.resend.com',
    bounds: { connectionsMax: null, rate: 2 },
    read: (given) => readKey(given, 'https://api.resend.com', (key) => ({ provider: 'resend', key })),
  },
  postmark: {
    options: ['endpoint', 'stream'],
    example: 'postmark://TOKEN@api.postmarkapp.com',
    read: (given) =>
      readKey(given, 'https://api.postmarkapp.com', (token) => ({
        provider: 'postmark',
        token,
        stream: given.option('stream') ?? 'outbound',
      })),
  },
}

const commonOptions = ['connections', 'rate', 'reserved', 'ca']

function findScheme(entry: string): Scheme | null {
  const name = entry.slice(0, Math.max(entry.indexOf(':'), 0))
  return Object.hasOwn(schemes, name) ? (schemes[name] ?? null) : null
}

export const isRelayUrl = (entry: string): boolean => findScheme(entry) !== null

/** One relay, or null and its faults. */
export function parseRelayUrl(entry: string): { relay: ParsedRelay | null; faults: readonly string[] } {
  const url = URL.parse(entry)
  const scheme = findScheme(entry)
  // A path or a fragment is a / or # of a password that was not escaped: what follows is no host.
  const isWhole = url !== null && /^\/?$/.test(url.pathname) && url.hash === '' && url.hostname !== ''
  if (scheme === null || !isWhole) {
    const shown = scheme?.example ?? example
    return { relay: null, faults: [`write ${shown}; ${urlEscapes}`] }
  }
  const faults: string[] = []
  const fault = (text: string) => void faults.push(text)
  const options = readOptions(url.search, [...commonOptions, ...scheme.options], fault)
  const given: RelayUrl = { url, option: (name) => options.get(name) ?? null, fault }
  const address = scheme.read(given)
  const relay = address === null ? null : { ...readCommon(given, scheme, address), address }
  return { relay: faults.length === 0 ? relay : null, faults }
}

/** Not by `URLSearchParams`, which takes a + of a secret for a space. */
function readOptions(
  search: string,
  known: readonly string[],
  fault: RelayUrl['fault'],
): ReadonlyMap<string, string> {
  const pairs = search
    .slice(1)
    .split('&')
    .filter(Boolean)
    .map((pair): [string, string] => {
      const equals = pair.indexOf('=')
      return equals < 0 ? [pair, ''] : [pair.slice(0, equals), decodePercent(pair.slice(equals + 1))]
    })
  for (const [name] of pairs)
    if (!known.includes(name)) {
      // The name may be a part of a secret that has an & in it.
      const shown = /^[a-z]{1,20}$/.test(name) ? ` "${name}"` : ''
      fault(`unknown option${shown} (${known.join(', ')} are known)`)
    }
  return new Map(pairs)
}

function readCommon({ option, fault }: RelayUrl, { bounds: own }: Scheme, address: RelayAddress) {
  const isMicrosoft = option('oauth') === 'microsoft'
  const bounds = isMicrosoft ? microsoftBounds : (own ?? noBounds)
  const connections = option('connections')
  if (connections !== null && !/^[1-9]\d{0,9}$/.test(connections))
    fault('connections is a whole number above 0')
  const reserved = option('reserved')
  if (reserved !== null && reserved !== 'send') fault('reserved is send, or left out')
  const host = address.protocol === 'smtp' ? address.host : new URL(address.endpoint).hostname
  return {
    connectionsMax: connections === null ? bounds.connectionsMax : Number(connections),
    rate: readRate(option('rate'), fault) ?? bounds.rate,
    takesReserved: reserved === 'send' || isLoopback(host),
  }
}

/** `14` a second, or `30/m`: 30 a minute. */
function readRate(text: string | null, fault: RelayUrl['fault']): number | null {
  if (text === null) return null
  const match = /^([1-9]\d{0,9})(\/m)?$/.exec(text)
  if (match === null) fault('rate is a whole number above 0 (emails a second), or like 30/m (a minute)')
  return Number(match?.[1]) / (match?.[2] === undefined ? 1 : 60)
}

function readSmtp(given: RelayUrl): SmtpAddress {
  const { url, option } = given
  const tls = readTls(given)
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const isMicrosoft = host === 'smtp.office365.com' || option('oauth') === 'microsoft'
  return {
    protocol: 'smtp',
    host,
    port: url.port === '' ? (tls === 'implicit' ? 465 : 587) : Number(url.port),
    tls,
    credentials: readCredentials(given),
    greetingName: readName(given),
    keepsSender: readKeepsSender(given, isMicrosoft),
    provider: readProvider(given, host),
    ...readCa(given),
  }
}

function readName({ option, fault }: RelayUrl): string | null {
  const given = option('name')
  const name = given === null ? null : toGreetingName(given)
  if (given !== null && name === null) fault(`name must be ${greetingForm}`)
  return name
}

/** Microsoft 365 refuses any sender but the mailbox that signed in. */
function readKeepsSender({ option, fault }: RelayUrl, usual: boolean): boolean {
  const envelope = option('envelope')
  if (envelope !== null && envelope !== 'plain') fault('envelope is plain, or left out')
  return usual || envelope === 'plain'
}

function readProvider({ option, fault }: RelayUrl, host: string): RelayProvider | null {
  const given = option('provider')
  if (given === null) return findProvider(host)
  const provider = relayProviders.find((name) => name === given)
  if (provider === undefined) fault(`provider is one of ${relayProviders.join(', ')}, or left out`)
  return provider ?? null
}

function readTls({ url, option, fault }: RelayUrl): SmtpAddress['tls'] {
  if (url.protocol === 'smtps:') return 'implicit'
  if (/^2?465$/.test(url.port)) fault(`port ${url.port} is TLS from the first byte: write smtps://`)
  const local = isLoopback(url.hostname)
  const tls = option('tls') ?? (local ? 'none' : 'starttls')
  if (tls !== 'starttls' && tls !== 'none') fault('tls is starttls or none')
  if (tls === 'none' && !local) fault('mail to another machine needs TLS: leave out tls=none')
  return tls === 'none' ? 'none' : 'starttls'
}

function readCredentials(given: RelayUrl): SmtpAddress['credentials'] {
  const { url, option, fault } = given
  const [user, pass] = [decodePercent(url.username), decodePercent(url.password)]
  if (option('oauth') !== null) {
    if (pass !== '') fault('with oauth, leave the password out of the URL')
    if (user === '') fault('with oauth, the user is the mailbox: smtp://mailbox%40acme.com@host?oauth=…')
    const oauth = readOAuth(given, {
      mailbox: user,
      scopes: { microsoft: 'https://outlook.office365.com/.default', google: 'https://mail.google.com/' },
    })
    return oauth === null ? null : { user, oauth }
  }
  const stray = oauthOptions.find((name) => option(name) !== null)
  if (stray !== undefined) fault(`${stray} needs oauth=microsoft, oauth=google or oauth=https://…`)
  if (user === '' && pass === '') return null
  if (user === '' || pass === '') fault('give both user and password, or neither')
  return { user, pass }
}

function readMailbox(given: RelayUrl, provider: 'graph' | 'gmail', usual: string): RelayAddress | null {
  const { url, fault } = given
  if (url.username === '' || url.password !== '')
    fault(`write ${schemes[provider]?.example}: the mailbox that sends is the user and host of the URL`)
  const mailbox = `${decodePercent(url.username)}@${url.hostname}`
  const endpoint = readEndpoint(given, usual)
  const scopes = {
    microsoft: `${endpoint}/.default`,
    google: 'https://www.googleapis.com/auth/gmail.send',
  }
  const usualOAuth = provider === 'graph' ? 'microsoft' : 'google'
  const oauth = readOAuth(given, { mailbox, scopes, usual: usualOAuth })
  if (oauth === null) return null
  return { protocol: 'https', endpoint, account: { provider, mailbox, oauth }, ...readCa(given) }
}

function readSes(given: RelayUrl): RelayAddress {
  const { url, option, fault } = given
  const region = url.hostname
  if (url.username === '' || url.password === '' || !/^[a-z]{2}(-[a-z]+)+-\d$/.test(region))
    fault(`write ${schemes.ses?.example}: access key id, secret access key and region`)
  const account: ApiAccount = {
    provider: 'ses',
    region,
    keyId: decodePercent(url.username),
    secret: decodePercent(url.password),
    configurationSet: option('set'),
    keepsSender: readKeepsSender(given, false),
  }
  const endpoint = readEndpoint(given, `https://email.${region}.amazonaws.com`)
  return { protocol: 'https', endpoint, account, ...readCa(given) }
}

function readKey(given: RelayUrl, usual: string, toAccount: (key: string) => ApiAccount): RelayAddress {
  const { url, fault } = given
  const scheme = url.protocol.slice(0, -1)
  const isUsual = `https://${url.host}` === usual
  if (url.username === '' || url.password !== '' || !isUsual)
    fault(`write ${schemes[scheme]?.example}: the key is the user of the URL`)
  const key = readGivenSecret(decodePercent(url.username), 'the key', fault)
  if (/[^\x20-\x7e]/.test(key))
    fault('the key has a character that is no part of any key: copy it again, without invisible characters')
  return {
    protocol: 'https',
    endpoint: readEndpoint(given, usual),
    account: toAccount(key),
    ...readCa(given),
  }
}

/** An origin. */
function readEndpoint({ option, fault }: RelayUrl, usual: string): string {
  const given = option('endpoint')
  if (given === null) return usual
  const url = URL.parse(given)
  if (url === null || url.origin !== given.replace(/\/$/, '') || !isSafeUrl(url)) {
    fault('endpoint is an https origin, such as https://graph.microsoft.us')
    return usual
  }
  return url.origin
}

function readCa({ option, fault }: RelayUrl): { readonly ca?: string } {
  const file = option('ca')
  if (file === null) return {}
  try {
    return { ca: readFileSync(file, 'utf8') }
  } catch {
    fault('cannot read the file named by ca')
    return {}
  }
}
