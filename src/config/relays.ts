/** `POSTERN_SMTP_URL` and the bounds of the relays. */
import { readFileSync } from 'node:fs'
import type { RelayAddress } from '../delivery/relay/smtp/connect.ts'
import { isLoopback } from './listeners.ts'
import { decodePercent, type Reader, readWhole } from './reader.ts'

export type RelayConfig = {
  readonly address: RelayAddress
  readonly connectionsMax: number
  /** Emails a second; null for no bound. */
  readonly rate: number | null
}

type Bounds = Pick<RelayConfig, 'connectionsMax' | 'rate'>

const name = 'POSTERN_SMTP_URL'

/**
 * Empty in dev mode unless relays are set: emails are then captured for the inbox. A process that does not
 * send needs none; it checks those that it knows.
 */
export function readRelays(reader: Reader, { sends }: { readonly sends: boolean }): RelayConfig[] {
  const { fault, mode, required, text } = reader
  const given = !sends
    ? text(name, '')
    : mode === 'serve'
      ? required(name, 'for example smtp://user:password@host:587')
      : text(name, 'capture')
  if (given === '' || (given === 'capture' && mode === 'dev')) return []
  if (given === 'capture') {
    fault(`${name}: capture sends nothing; it is for dev mode`)
    return []
  }
  const bounds = {
    connectionsMax: readWhole(reader, 'POSTERN_SMTP_CONNECTIONS', 5),
    rate: text('POSTERN_SMTP_RATE', '') === '' ? null : readWhole(reader, 'POSTERN_SMTP_RATE', 0),
  }
  const entries = given.split(/[\s,]+/)
  // A space inside a password splits one URL into two, and neither half may be shown.
  if (entries.slice(1).some((entry) => !/^smtps?:/.test(entry))) {
    fault(`${name}: write a space or comma in a password as %20 or %2C; spaces separate relays`)
    return []
  }
  return entries.flatMap((entry, index) => {
    const relay = parseRelay(entry, bounds)
    if ('address' in relay) return [relay]
    for (const text of relay) fault(`${name}, relay ${index + 1}: ${text}`)
    return []
  })
}

/** One relay, or its faults. No fault repeats the URL, which may hold a password. */
function parseRelay(entry: string, bounds: Bounds): RelayConfig | readonly string[] {
  const url = URL.parse(entry)
  // A path or a fragment is a / or # of a password that was not escaped: what follows is no host.
  const isWhole = url !== null && /^\/?$/.test(url.pathname) && url.hash === ''
  if (!isWhole || !/^smtps?:$/.test(url.protocol) || url.hostname === '') {
    return [
      'write smtp://user:password@host:587 or smtps://host; in a password write @ : / ? # % as %40 %3A %2F %3F %23 %25',
    ]
  }
  const faults: string[] = []
  const options = readOptions(url.searchParams, faults)
  const tls = readTls(url, options.tls, faults)
  const credentials = readCredentials(url, faults)
  if (faults.length > 0) return faults
  const port = url.port === '' ? (tls === 'implicit' ? 465 : 587) : Number(url.port)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return {
    address: { host, port, tls, credentials, ...(options.ca === null ? {} : { ca: options.ca }) },
    connectionsMax: options.connections ?? bounds.connectionsMax,
    rate: options.rate ?? bounds.rate,
  }
}

type Options = { connections: number | null; rate: number | null; tls: string | null; ca: string | null }
const optionNames = ['connections', 'rate', 'tls', 'ca']

function readOptions(query: URLSearchParams, faults: string[]): Options {
  const unknown = [...query.keys()].filter((option) => !optionNames.includes(option))
  for (const option of unknown)
    faults.push(`unknown option "${option}" (${optionNames.join(', ')} are known)`)
  const whole = (option: string) => {
    const value = query.get(option)
    if (value !== null && !/^[1-9]\d{0,9}$/.test(value)) faults.push(`${option} is a whole number above 0`)
    return value === null ? null : Number(value)
  }
  const file = query.get('ca')
  const ca = file === null ? null : readFile(file)
  if (file !== null && ca === null) faults.push('cannot read the file named by ca')
  return { connections: whole('connections'), rate: whole('rate'), tls: query.get('tls'), ca }
}

function readTls(url: URL, option: string | null, faults: string[]): RelayAddress['tls'] {
  if (url.protocol === 'smtps:') return 'implicit'
  const local = isLoopback(url.hostname)
  const tls = option ?? (local ? 'none' : 'starttls')
  if (tls !== 'starttls' && tls !== 'none') faults.push('tls is starttls or none')
  if (tls === 'none' && !local) faults.push('mail to another machine needs TLS: leave out tls=none')
  return tls === 'none' ? 'none' : 'starttls'
}

function readCredentials(url: URL, faults: string[]): RelayAddress['credentials'] {
  if (url.username === '' && url.password === '') return null
  if (url.username === '' || url.password === '') faults.push('give both user and password, or neither')
  return { user: decodePercent(url.username), pass: decodePercent(url.password) }
}

function readFile(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
