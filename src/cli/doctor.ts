/**
 * `postern doctor`: checks everything that `serve` needs, in the order in which to fix it. Sends no email.
 */
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { describeAuthHooksListener } from '../config/listeners.ts'
import { type Config, ConfigError, parseConfig } from '../config/parse-config.ts'
import { isSet } from '../config/reader.ts'
import { describeReports } from '../config/reports.ts'
import { devSecretKeysFile, type Mode } from '../config/settings.ts'
import { newTransportTexts } from '../config/transports.ts'
import { describeUnknownSettings } from '../config/unknown-settings.ts'
import type { App } from '../domain/app/app.ts'
import { newAlertsCheck } from '../management/alerts/alerts.ts'
import { checkAuthHooks } from '../management/auth-hooks/find-auth-hook-faults.ts'
import { checkLinkDomains } from '../management/domains/check-link-domain.ts'
import { newDomainFacts } from '../management/domains/domain-parts.ts'
import { checkDomains } from '../management/domains/domain-subject.ts'
import { checkBounces, checkReports } from '../management/service/check-bounces.ts'
import { checkDatabase, examineStore } from '../management/service/check-database.ts'
import { checkRelays } from '../management/service/check-relay.ts'
import { checkTransports } from '../management/service/check-transports.ts'
import { findDown } from '../management/service/outages.ts'
import type { SealedSecret } from '../store/auth-hook-store.ts'
import { openAuthHookSecret } from '../store/crypto/auth-hook-secret.ts'
import { findMissingKey } from '../store/crypto/key-ring.ts'
import { SchemaMissing } from '../store/shared/migrations.ts'
import type { Finding } from '../store/store.ts'
import type { CommandSpec } from './command.ts'
import { type CliDeps, isRemote, withOperations } from './context.ts'
import { CommandFailed, describeFindings, print } from './output.ts'

export const doctorCommand: CommandSpec = {
  use: 'doctor',
  about: 'check configuration, database, disk, bounce address, auth servers, the DNS of domains, and relays',
  examples: ['postern doctor --env-file /etc/postern/env'],
  async act(deps) {
    const findings = isRemote(deps) ? await examineRemote(deps) : await examine(deps)
    const ok = findings.every((finding) => finding.ok)
    print(deps.output, { ok, findings }, () => describeFindings(findings))
    if (!ok) throw new CommandFailed('some checks failed; see above')
  },
}

const examineRemote = (deps: CliDeps): Promise<Finding[]> =>
  withOperations(deps, async ({ call }) => (await call('checks.run', {})).findings)

async function examine(deps: CliDeps): Promise<Finding[]> {
  const versions = { check: 'versions', ok: true, detail: `postern ${deps.version}, Node ${process.version}` }
  const mode = chooseMode(deps)
  const toFault = (detail: string): Finding => ({ check: 'configuration', ok: false, detail })
  const unknown = describeUnknownSettings(deps.env).map(toFault)
  try {
    const config = parseConfig(deps.env, mode)
    return [versions, describeConfig(config, mode), ...unknown, ...(await examineParts(deps, config))]
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return [versions, ...error.faults.map(toFault), ...unknown]
  }
}

/** In a folder of dev mode without other configuration, dev mode is what runs there. */
function chooseMode({ env }: CliDeps): Mode {
  const configured = ['POSTERN_DATABASE_URL', 'POSTERN_SECRET_KEYS', 'POSTERN_SMTP_URL'].some((name) =>
    isSet(env, name),
  )
  return !configured && existsSync(devSecretKeysFile) ? 'dev' : 'serve'
}

function describeConfig(config: Config, mode: Mode): Finding {
  const capture = config.relays.length === 0 ? '; emails are captured for the inbox' : ''
  const detail = mode === 'dev' ? `dev mode, with the data in this folder${capture}` : 'complete'
  return { check: 'configuration', ok: true, detail }
}

async function examineParts(deps: CliDeps, config: Config): Promise<Finding[]> {
  const { apps, down, findings, isRunning, transports } = await examineDatabase(deps, config)
  const settings = { ...config, apps, captures: false, down }
  const relays = [
    ...(config.relays.length === 0 ? [] : await checkRelays(config.relays, settings)),
    ...(await checkTransports(transports, settings)),
  ]
  return [...findings, ...(await deps.checkListeners(config, isRunning)), ...relays]
}

type Examined = {
  readonly apps: readonly App[]
  readonly down: ReadonlyMap<string, string>
  readonly findings: readonly Finding[]
  readonly isRunning: boolean
  readonly transports: Parameters<typeof checkTransports>[0]
}

/** Without apps if the database cannot be read. */
async function examineDatabase(deps: CliDeps, config: Config): Promise<Examined> {
  try {
    const store = await deps.openStore(config, 'open')
    try {
      const { bounceAddress, linksBaseUrl, ring } = config
      const texts = newTransportTexts(config)
      const lacksKey = (sealed: string) => findMissingKey(ring, sealed)
      const findings = await checkDatabase(store, () =>
        examineStore({ store, transports: texts, lacksKey, checkAlerts: newAlertsCheck(config.alerts, store) }),
      )
      const apps = await store.listApps()
      const authHooks = {
        linksBaseUrl,
        authHooksListener: describeAuthHooksListener(config),
        opensAuthHookSecret: (secret: SealedSecret) => openAuthHookSecret(ring, secret) !== null,
      }
      const parts = { store, bounceAddress, ...newDomainFacts(config) }
      const more = [
        checkBounces(describeReports(config), apps),
        checkReports(describeReports(config), await store.listReportSources(), store.now()),
        ...checkAuthHooks(authHooks, apps, await store.listAuthHookKeys()),
        ...(await checkDomains(parts)),
        ...(await checkLinkDomains(apps, { probeLinkDomain: await deps.newLinkDomainProbe(config) })),
      ]
      const { presentNode } = await import('../management/resources.ts') // with every schema, which takes time to load
      const nodes = (await store.listNodes()).map((node) => presentNode(node, store.now()))
      const isRunning = nodes.some(({ alive, machine }) => alive && machine === hostname())
      const transports = (await store.listTransports()).map((one) => ({ name: one.name, ...texts.open(one) }))
      return { apps, down: findDown(nodes), findings: [...findings, ...more], isRunning, transports }
    } finally {
      await store.close()
    }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    const finding = { check: 'database', ok: error instanceof SchemaMissing, detail }
    return { apps: [], down: new Map(), findings: [finding], isRunning: false, transports: [] }
  }
}
