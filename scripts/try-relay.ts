/**
 * `node scripts/try-relay.ts URL TO [FROM]`: sends one email through a relay, from a service with a database
 * of its own, and prints what to paste into a report of how a provider behaves. The report names
 * no recipient and holds no secret. Without FROM, the sender is the mailbox in the URL.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { composeCommands } from '../src/compose/commands.ts'
import { ConfigError, parseConfig } from '../src/config/parse-config.ts'
import type { RelayConfig } from '../src/config/relays.ts'
import type { Result } from '../src/management/operation/result.ts'
import { checkRelay } from '../src/management/service/check-relay.ts'
import { newSecretKey } from '../src/store/crypto/key-ring.ts'
import { readManifest } from './build.ts'

const waitMs = 120_000
const pollMs = 250

function findMailbox({ address }: RelayConfig): string | null {
  if (address.protocol === 'smtp') return address.credentials?.user ?? null
  return (address.account as { readonly mailbox?: string }).mailbox ?? null
}

function unwrap<Value>(result: Result<Value>): Value {
  if (result.ok) return result.value
  const { message, issues = [] } = result.error
  throw new Error([message, ...issues.map((issue) => `${issue.field}: ${issue.message}`)].join('\n'))
}

async function tryRelay(url: string, to: string, from: string | undefined, folder: string): Promise<boolean> {
  const config = parseConfig(
    {
      POSTERN_SMTP_URL: url,
      POSTERN_DATABASE_URL: `sqlite:${join(folder, 'postern.db')}`,
      POSTERN_SECRET_KEYS: newSecretKey('k1'),
      POSTERN_ROLES: 'worker',
      POSTERN_OPS_LISTEN: '127.0.0.1:0',
      POSTERN_LOG_LEVEL: 'error',
    },
    'serve',
  )
  const [relay] = config.relays
  const sender = from ?? (relay && findMailbox(relay))
  if (relay === undefined || sender == null) throw new Error('name the sender as the third argument')
  const { version } = readManifest()
  const onFatal = (error: Error) => {
    throw error
  }
  const parts = composeCommands({ version, user: 'try-relay', onFatal })
  const { detail } = await checkRelay(relay)
  const service = await parts.startService(config)
  try {
    const runner = await parts.newRunner(config, service.store)
    const [name, params] = ['Postern test', { app: 'test' }]
    const body = { name, from: { name, address: sender }, allowedUrls: ['https://example.com'] }
    unwrap(await runner.call('app.put', { params, body }))
    const { email: id } = unwrap(await runner.call('app.test_email', { params, body: { to } }))
    const show = async () => unwrap(await runner.call('email.show', { params: { email: id } }))
    const endMs = performance.now() + waitMs
    let email = await show()
    while (email.finishedAt === null && performance.now() < endMs) {
      await sleep(pollMs)
      email = await show()
    }
    const trail = email.trail.map((attempt) => `  ${JSON.stringify(attempt)}`)
    console.log(`Postern ${version}, Node ${process.version}, ${url.slice(0, url.indexOf(':'))}: ${relay.name}
check: ${detail}
result: ${email.state}. ${email.explanation}
trail:
${trail.join('\n')}

For a report, paste these lines and, if the email arrived, these headers of it (in most mailboxes under "show original"),
without addresses: From, Reply-To, Subject, Date, Message-ID, Content-Language, Auto-Submitted, X-Auto-Response-Suppress,
Feedback-ID, X-Entity-Ref-ID, Authentication-Results; and whether the email is in the mailbox's "Sent".`)
    return email.state === 'delivered'
  } finally {
    await service.stop()
  }
}

const [url = '', to = '', from] = process.argv.slice(2)
if (url === '' || to === '') {
  console.error('usage: node scripts/try-relay.ts URL TO [FROM]')
  process.exit(2)
}
const folder = mkdtempSync(join(tmpdir(), 'postern-try-'))
try {
  process.exitCode = (await tryRelay(url, to, from, folder)) ? 0 : 1
} catch (error) {
  const faults = error instanceof ConfigError ? error.faults : [(error as Error).message]
  console.error(`try-relay: ${faults.join('\n')}`)
  process.exitCode = 2
} finally {
  rmSync(folder, { recursive: true, force: true })
}
