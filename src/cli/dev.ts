/**
 * `postern dev`: everything on one machine, to try Postern and to develop an app with it. Makes its own
 * data folder, key ring, app and key, and captures emails for the inbox instead of sending them.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Config, parseConfig } from '../config/parse-config.ts'
import { isSet } from '../config/reader.ts'
import { dataFolder, devSecretKeysFile } from '../config/settings.ts'
import { hashDeliveryKey, newDeliveryKey } from '../domain/app/delivery-key.ts'
import { type AppSettings, defaultSettings } from '../domain/app/settings.ts'
import { defaultLimits } from '../domain/limit.ts'
import type { Actor } from '../domain/operator/audit.ts'
import { quoteForShell } from '../domain/shell.ts'
import type { PosternEvent } from '../observe/events.ts'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import type { Store } from '../store/store.ts'
import type { CommandSpec } from './command.ts'
import type { CliDeps, RunningService } from './context.ts'
import { CommandFailed } from './output.ts'

const keyFile = `${dataFolder}/demo-key`

const demoSettings: AppSettings = {
  ...defaultSettings,
  name: 'Demo',
  from: { name: 'Demo', address: 'auth@demo.example.com' },
  senderDomains: ['demo.example.com'],
  supportContact: 'support@demo.example.com',
  allowedUrls: ['https://app.example.com'],
  appSchemes: ['demo'],
  allowLocalhost: true,
  allowCodes: true,
  limits: {
    keyPerMinute: defaultLimits.keyPerMinute * 100,
    recipientPerHour: defaultLimits.recipientPerHour * 100,
    daily: defaultLimits.daily * 100,
  },
}

export const devCommand: CommandSpec = {
  use: 'dev',
  about: 'run everything on this machine, with an inbox instead of a relay',
  examples: ['postern dev'],
  act: dev,
}

function makeDataFolder(): void {
  try {
    mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
    writeFileSync(`${dataFolder}/.gitignore`, '*\n') // keys and links, in the folder of somebody's app
  } catch (error) {
    throw new CommandFailed(
      `dev mode keeps its data in ${resolve(dataFolder)}, which cannot be written: ${(error as Error).message}. Run it in a folder of your own`,
    )
  }
}

async function dev(deps: CliDeps): Promise<void> {
  makeDataFolder()
  if (!isSet(deps.env, 'POSTERN_SECRET_KEYS') && !existsSync(devSecretKeysFile)) {
    writeFileSync(devSecretKeysFile, `${newSecretKey('dev')}\n`, { mode: 0o600 })
  }
  const config = parseConfig(deps.env, 'dev')
  const stopped = deps.untilStopped()
  const service = await deps.startService(config)
  try {
    const curl = sampleRequest(service, await demoKey(service.store))
    service.hints.curl = curl
    deps.output.out(welcome(service, config, curl))
    service.events.subscribe((event) => {
      const line = describeEvent(event, service)
      if (line !== null) deps.output.out(`${new Date().toISOString().slice(11, 19)}  ${line}`)
    })
    await stopped
  } finally {
    await service.stop()
  }
  deps.output.err(
    `stopped; the inbox is now empty, everything else is kept in ${resolve(dataFolder)} (delete that folder to start over)`,
  )
}

/**
 * The demo app's key, kept in a file that only the owner can read. A key that no longer works is replaced.
 */
async function demoKey(store: Store): Promise<string> {
  if (existsSync(keyFile)) {
    const kept = readFileSync(keyFile, 'utf8').trim()
    const { kind } = await store.enqueue({ keyHash: hashDeliveryKey(kept), judged: null })
    if (kind !== 'invalid_key') return kept
  }
  const app = (await store.findApp('demo')) ?? (await store.createApp('demo', demoSettings, actor))
  if (app === null) throw new Error('the demo app could not be created')
  const key = newDeliveryKey()
  const hash = hashDeliveryKey(key)
  const made = await store.createKey({ app: app.id, hash, name: `demo ${key.slice(-6)}`, expiresAt: null }, actor)
  if (made === null || typeof made === 'string') throw new Error('the demo key could not be created')
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 })
  return key
}

const actor: Actor = { kind: 'service', id: null, name: 'dev', via: 'service', requestId: null }

/** One line for each request and each email that was captured, sent or failed. */
function describeEvent(event: PosternEvent, { urls }: RunningService): string | null {
  if (event.kind === 'request_answered') {
    if (event.status === 202) return null
    const { status, code, issues, requestId } = event
    return `${status}  ${[code, ...issues].join('; ')}  ${requestId}`
  }
  if (event.kind !== 'attempt_recorded') return null
  const { emailId, outcome, type } = event
  if (outcome.kind === 'delivered')
    return `202  ${type}  ${urls.inbox === undefined ? `${emailId} delivered` : `${urls.inbox}/inbox/${emailId}`}`
  return 'reply' in outcome ? `     ${type}  ${emailId} ${outcome.kind}: ${outcome.reply.text}` : null
}

/** The printed line works for as long as a terminal usually shows it. */
const lifeMs = 7 * 86_400_000

function describeSending(urls: RunningService['urls'], { roles }: Config): string {
  if (!roles.has('worker')) return 'POSTERN_ROLES leaves out the worker: emails stay in the queue.'
  if (urls.inbox === undefined) return 'POSTERN_SMTP_URL is set: emails are sent to their real recipients.'
  return 'The inbox captures emails; nothing is sent.'
}

function sampleRequest({ store, urls }: RunningService, key: string): string {
  const body = {
    to: 'you@example.com',
    type: 'magic_link',
    url: 'https://app.example.com/auth?token=demo-1234',
    expiresAt: new Date(store.now() + lifeMs).toISOString().replace(/\.\d+Z$/, 'Z'),
  }
  return `curl ${urls.api}/v1/email -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -w '\\n' -d ${quoteForShell(JSON.stringify(body))}`
}

function welcome({ urls }: RunningService, config: Config, curl: string): string {
  const trial = `Send an email:

${curl}

${urls.inbox === undefined ? '' : 'Then open the inbox. '}`
  return `
Postern is ready in dev mode. ${describeSending(urls, config)}

  Console  ${urls.console ?? 'none: POSTERN_CONSOLE_LISTEN is off, or POSTERN_ROLES leaves console out'}
  Inbox    ${urls.inbox === undefined ? 'none' : `${urls.inbox}/inbox`}
  API      ${urls.api === undefined ? 'none: POSTERN_ROLES leaves api out' : `${urls.api}/v1/email`}
  Links    ${urls.links ?? 'none: POSTERN_ROLES leaves links out'}
  Auth hooks ${urls.authHooks === undefined ? 'none: POSTERN_ROLES leaves auth-hooks out' : `${urls.authHooks}, where auth servers post`}
  Ops      ${urls.ops}/livez, /readyz, /metrics

${urls.api === undefined ? '' : trial}Stop with Ctrl-C. That empties the inbox; everything else stays in ${dataFolder}.
`
}
