/**
 * Runs in a network namespace in which this machine has a public address: connects to a relay of a transport
 * there, and prints "connected", or why not.
 */
import { readFileSync } from 'node:fs'
import { SMTPServer } from 'smtp-server'
import { SmtpSession } from '../../src/delivery/relay/smtp/smtp-session.ts'
import { startAddressServer, startNameServer } from './dns-server.ts'
import { smtpTo } from './service.ts'

const [address = '', host = ''] = process.argv.slice(2)
const tls = (name: string) => readFileSync(new URL(`./tls/${name}.pem`, import.meta.url), 'utf8')
const scope = { after: () => {} }
// Without an address, the name server says nothing.
const dnsServer =
  address === '' ? (await startNameServer(scope, 'silence')).server : await startAddressServer(scope, address)

const server = new SMTPServer({ cert: tls('sns.cert'), key: tls('sns.key'), authOptional: true })
server.on('error', () => {})
await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
const { port } = server.server.address() as { port: number }
const relay = smtpTo(port, { host, tls: 'starttls', ca: tls('sns.cert'), publicOnly: { dnsServers: [dnsServer] } })
const session = await SmtpSession.open(relay, AbortSignal.timeout(address === '' ? 1000 : 60_000))
console.log(session instanceof SmtpSession ? 'connected' : session.reply.text)
process.exit(0)
