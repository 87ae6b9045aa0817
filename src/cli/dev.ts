/**
 * `postern dev`: everything on one machine, for trying out and for developing an app against. Makes
 * its own data folder, key ring, app and key; keeps emails for the inbox instead of sending them.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { dataFolder, devSecretKeysFile } from '../config/parse-config.ts'
import { type AppSettings, defaultSettings } from '../domain/app/app.ts'
import { hashDeliveryKey, newDeliveryKey } from '../domain/app/delivery-key.ts'
import { defaultLimits } from '../domain/app/limit.ts'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import type { Store } from '../store/store.ts'
import type { CliDeps, RunningService } from './context.ts'

const keyFile = `${dataFolder}/demo-key`
const dayMs = 86_400_000

const demoSettings: AppSettings = {
  ...defaultSettings,
  name: 'Demo',
  from: { name: 'Demo', address: 'auth@demo.example.com' },
  supportContact: 'support@demo.example.com',
  allowedUrls: ['https://app.example.com'],
  appSchemes: ['demo'],
  allowLocalhost: true,
  limits: {
    keyPerMinute: defaultLimits.keyPerMinute * 100,
    recipientPerHour: defaultLimits.recipientPerHour * 100,
    daily: defaultLimits.daily * 100,
  },
}

export function addDevCommand(program: Command, deps: CliDeps): void {
  program
    .command('dev')
    .description('everything on this machine, with an inbox instead of a relay')
    .action(async () => {
      mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
      if (deps.env.POSTERN_SECRET_KEYS === undefined && !existsSync(devSecretKeysFile)) {
        writeFileSync(devSecretKeysFile, `${newSecretKey('dev')}\n`, { mode: 0o600 })
      }
      const service = await deps.startService(deps.parseConfig(deps.env, 'dev'))
      const key = await demoKey(service.store)
      deps.output.out(welcome(service, key))
      await deps.untilStopped()
      await service.stop()
    })
}

/** The demo app's key: made once, kept in a file that only the owner reads. */
async function demoKey(store: Store): Promise<string> {
  const known = await store.findApp('demo')
  if (known !== null && existsSync(keyFile)) return readFileSync(keyFile, 'utf8').trim()
  const app = known ?? (await store.createApp('demo', demoSettings))
  if (app === null) throw new Error('the demo app could not be made')
  const key = newDeliveryKey()
  await store.createKey({ app: app.id, hash: hashDeliveryKey(key), name: 'demo', expiresAt: null })
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 })
  return key
}

function welcome({ urls, store }: RunningService, key: string): string {
  const body = {
    to: 'you@example.com',
    type: 'magic_link',
    url: 'https://app.example.com/auth?token=demo-1234',
    expiresAt: new Date(store.now() + dayMs).toISOString().replace(/\.\d+Z$/, 'Z'),
  }
  return `
Postern is ready (dev mode: emails are kept for the inbox, none is sent).

  API    ${urls.api}/v1/email
  Links  ${urls.links ?? 'none: POSTERN_ROLES leaves links out'}
  Inbox  ${urls.console ?? 'none: POSTERN_SMTP_URL is set, emails are really sent'}
  Ops    ${urls.ops}/livez, /readyz, /metrics

Send an email:

curl ${urls.api}/v1/email -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'

Stop with Ctrl-C.
`
}
