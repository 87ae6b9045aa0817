/**
 * The grammar of a relay's URL: `smtp:` and `smtps:` for SMTP servers, and a scheme for each mail API. No
 * fault repeats any of it, since it may hold a password.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { ApiAddress, RelayAddress } from '../delivery/relay/relay-address.ts'
import type { SmtpAddress } from '../delivery/relay/smtp/connect.ts'
import { isInternal } from '../dns/private-address.ts'
import { bareHost, isLoopback } from '../domain/client-network.ts'
import type { ApiService, Bounds, ServiceUrl } from '../services/service.ts'
import {
  type ApiMailService,
  apiServices,
  findSmtpService,
  findSmtpServiceByName,
  referringServices,
  type SmtpMailService,
  tokenServices,
} from '../services/services.ts'
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

type Scheme = {
  readonly options: readonly string[]
  /** The URL without options, as faults show it. */
  readonly example: string
  readonly read: (given: RelayUrl) => Read | null
}

/** An address, and the bounds of its service; null without any. */
type Read = { readonly address: RelayAddress; readonly bounds: Bounds | null }

const example = 'smtp://user:password@host:587 or smtps://host'

const smtpOptions = ['deadline', 'envelope', 'name', 'provider', ...oauthOptions]

const apiSchemes = apiServices.map((service): [string, Scheme] => {
  const { api, name } = service
  const options = ['endpoint', ...api.options, ...(api.tokenScope === undefined ? [] : oauthOptions)]
  return [api.scheme ?? name, { options, example: api.example, read: (given) => readApi(given, service) }]
})

const schemes: ReadonlyMap<string, Scheme> = new Map([
  ['smtp', { options: ['tls', ...smtpOptions], example, read: readSmtp }],
  ['smtps', { options: smtpOptions, example, read: readSmtp }],
  ...apiSchemes,
])

const commonOptions = ['connections', 'rate', 'reserved', 'ca']

const findScheme = (entry: string): Scheme | null =>
  schemes.get(entry.slice(0, Math.max(entry.indexOf(':'), 0))) ?? null

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
  const read = readValid(scheme, given)
  const relay = read === null ? null : { ...readCommon(given, read), address: read.address }
  return { relay: faults.length === 0 ? relay : null, faults }
}

/** A host of a mail API is a part of its endpoint. */
function readValid(scheme: Scheme, given: RelayUrl): Read | null {
  const read = scheme.read(given)
  if (read === null || read.address.protocol === 'smtp' || URL.canParse(read.address.endpoint)) return read
  given.fault(`write ${scheme.example}`)
  return null
}

/** Not by `URLSearchParams`, which takes a + of a secret for a space. */
function readOptions(search: string, known: readonly string[], fault: RelayUrl['fault']): ReadonlyMap<string, string> {
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
  const twice = known.find((name) => pairs.filter(([other]) => other === name).length > 1)
  if (twice !== undefined) fault(`${twice} is given more than once`)
  return new Map(pairs)
}

function readCommon(given: RelayUrl, { address, bounds }: Read) {
  const { option, fault } = given
  const connections = option('connections')
  if (connections !== null && !/^[1-9]\d{0,9}$/.test(connections)) fault('connections is a whole number above 0')
  const host = address.protocol === 'smtp' ? address.host : new URL(address.endpoint).hostname
  return {
    connectionsMax: connections === null ? (bounds?.connectionsMax ?? null) : Number(connections),
    rate: readRate(option('rate'), fault) ?? bounds?.rate ?? null,
    takesReserved: hasOption(given, 'reserved', 'send') || isLoopback(host),
  }
}

/** `14` a second, or `30/m`: 30 a minute. */
function readRate(text: string | null, fault: RelayUrl['fault']): number | null {
  if (text === null) return null
  const match = /^([1-9]\d{0,9})(\/m)?$/.exec(text)
  if (match === null) fault('rate is a whole number above 0 (emails a second), or like 30/m (a minute)')
  return Number(match?.[1]) / (match?.[2] === undefined ? 1 : 60)
}

function readSmtp(given: RelayUrl): Read {
  const { url } = given
  const tls = readTls(given)
  const host = bareHost(url.hostname).toLowerCase()
  const service = readService(given, host)
  const address: SmtpAddress = {
    protocol: 'smtp',
    host,
    port: url.port === '' ? (tls === 'implicit' ? 465 : 587) : Number(url.port),
    tls,
    credentials: readCredentials(given),
    greetingName: readName(given),
    keepsSender: readKeepsSender(given) || service?.smtp.keepsSender === true,
    returnsLate: hasOption(given, 'deadline', 'return'),
    service,
    ...readCa(given),
  }
  return { address, bounds: service?.smtp.bounds ?? null }
}

function readName({ option, fault }: RelayUrl): string | null {
  const given = option('name')
  const name = given === null ? null : toGreetingName(given)
  if (given !== null && name === null) fault(`name must be ${greetingForm}`)
  return name
}

/** Whether an option that has one value is given. */
function hasOption({ option, fault }: RelayUrl, name: string, value: string): boolean {
  const given = option(name)
  if (given !== null && given !== value) fault(`${name} is ${value}, or left out`)
  return given === value
}

const readKeepsSender = (given: RelayUrl): boolean => hasOption(given, 'envelope', 'plain')

/** By its host, or as the URL says: a relay may have another name, or a proxy in front. */
function readService({ option, fault }: RelayUrl, host: string): SmtpMailService | null {
  const given = option('provider')
  if (given === null) return findSmtpService(host) ?? findSmtpServiceByName(option('oauth'))
  const service = referringServices.find(({ name }) => name === given)
  if (service === undefined)
    fault(`provider is one of ${referringServices.map(({ name }) => name).join(', ')}, or left out`)
  return service ?? null
}

function readTls({ url, option, fault }: RelayUrl): SmtpAddress['tls'] {
  if (url.protocol === 'smtps:') return 'implicit'
  if (/^2?465$/.test(url.port)) fault(`port ${url.port} is TLS from the first byte: write smtps://`)
  const local = isLoopback(url.hostname)
  const tls = option('tls') ?? (local ? 'none' : 'starttls')
  if (tls !== 'starttls' && tls !== 'none') fault('tls is starttls or none')
  if (tls === 'none' && !local) {
    const address = bareHost(url.hostname)
    if (isIP(address) !== 0 && !isInternal(address))
      fault('mail to another machine needs TLS, except in a private network: leave out tls=none')
    // Whoever can read it in the network could send as this account.
    if (url.username !== '' || url.password !== '' || option('oauth') !== null)
      fault('with tls=none, a password or token would be readable in the network: leave out user, password and oauth')
  }
  return tls === 'none' ? 'none' : 'starttls'
}

function readCredentials(given: RelayUrl): SmtpAddress['credentials'] {
  const { url, option, fault } = given
  const { user, password: pass } = readUser(url)
  if (option('oauth') !== null) {
    if (pass !== '') fault('with oauth, leave the password out of the URL')
    if (user === '') fault('with oauth, the user is the mailbox: smtp://mailbox%40acme.com@host?oauth=…')
    const oauth = readOAuth(given, {
      mailbox: user,
      usual: null,
      toScope: (service) => service?.tokens.smtpScope ?? null,
    })
    return oauth === null ? null : { user, oauth }
  }
  const stray = oauthOptions.find((name) => option(name) !== null)
  if (stray !== undefined)
    fault(`${stray} needs ${tokenServices.map(({ name }) => `oauth=${name}`).join(', ')} or oauth=https://…`)
  if (user === '' && pass === '') return null
  if (user === '' || pass === '') fault('give both user and password, or neither')
  return { user, pass }
}

function readApi(given: RelayUrl, service: ApiMailService): Read | null {
  const { api } = service
  const url = newServiceUrl(given, api)
  const account = api.readAccount(url)
  const endpoint = readEndpoint(given, api.endpoint.replace('{host}', url.host))
  const scope = api.tokenScope?.(endpoint)
  const oauth =
    scope === undefined
      ? null
      : readOAuth(given, { mailbox: toMailbox(given.url), usual: service.name, toScope: () => scope })
  if (scope !== undefined && oauth === null) return null
  const address: ApiAddress = { protocol: 'https', service, account, oauth, endpoint, ...readCa(given) }
  return { address, bounds: api.bounds ?? null }
}

const newServiceUrl = (given: RelayUrl, api: ApiService): ServiceUrl => ({
  host: given.url.hostname,
  option: given.option,
  fault: given.fault,
  key: () => readKey(given, api),
  mailbox: () => readMailbox(given, api),
  credentials: () => readUser(given.url),
  keepsSender: () => readKeepsSender(given),
})

const readUser = ({ password, username }: URL) => ({
  user: decodePercent(username),
  password: decodePercent(password),
})

function readMailbox({ url, fault }: RelayUrl, { example }: ApiService): string {
  if (url.username === '' || url.password !== '')
    fault(`write ${example}: the mailbox that sends is the user and host of the URL`)
  return toMailbox(url)
}

const toMailbox = ({ hostname, username }: URL): string => `${decodePercent(username)}@${hostname}`

function readKey({ url, fault }: RelayUrl, { endpoint, example }: ApiService): string {
  if (url.username === '' || url.password !== '' || `https://${url.host}` !== endpoint)
    fault(`write ${example}: the key is the user of the URL`)
  const key = readGivenSecret(decodePercent(url.username), 'the key', fault)
  if (/[^\x20-\x7e]/.test(key))
    fault('the key has a character that is no part of any key: copy it again, without invisible characters')
  return key
}

/** An origin. */
function readEndpoint({ option, fault }: RelayUrl, usual: string): string {
  const given = option('endpoint')
  if (given === null) return usual
  const url = URL.parse(given)
  if (url === null || url.origin !== given.replace(/\/$/, '') || !isSafeUrl(url)) {
    fault('endpoint is an https origin, such as https://api.example.com')
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
