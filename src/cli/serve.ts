/** `postern serve` and `postern migrate`: production. */
import { parseConfig } from '../config/parse-config.ts'
import { describeUnknownSettings } from '../config/unknown-settings.ts'
import type { CommandSpec } from './command.ts'
import { type CliDeps, commandConfig, type RunningService } from './context.ts'
import { notifySystemd } from './notify-systemd.ts'
import { print } from './output.ts'

/** How long requests are still answered after `/readyz` turns 503, so that balancers notice first. */
const drainMs = 1500

export const serveCommand: CommandSpec = {
  use: 'serve',
  about: 'run the service (docs/configuration.md; "postern doctor" checks its configuration)',
  examples: ['postern serve --env-file /etc/postern/env'],
  act: serve,
}

export const migrateCommand: CommandSpec = {
  use: 'migrate',
  about: 'create the database, or bring it up to date (serve does this too)',
  examples: ['postern migrate --env-file /etc/postern/env'],
  async act(deps) {
    const store = await deps.openStore(commandConfig(deps), 'migrate')
    await store.close()
    print(deps.output, { migrated: true }, () => 'the database is ready')
  },
}

async function serve(deps: CliDeps): Promise<void> {
  for (const fault of describeUnknownSettings(deps.env)) deps.output.err(`postern: ${fault}`)
  const config = parseConfig(deps.env, 'serve')
  const stopped = deps.untilStopped() // signals are caught from now on: parts accept and send before all have started
  const service = await deps.startService(config)
  try {
    const { urls, store } = service
    // Standard output has the log: each of its lines is one JSON document.
    if (deps.output.json) deps.output.out(JSON.stringify({ ready: true, ...urls }))
    else deps.output.err(welcome(deps, service))
    const apps = await store.listApps().catch(() => null)
    if (apps?.length === 0) deps.output.err(nextSteps(urls.console !== undefined))
    const onStop = await notifySystemd(deps.env, {
      askStore: () => store.probeWrite(),
      onFault: (text) => deps.output.err(`postern: ${text}`),
    })
    await stopped
    await onStop()
  } finally {
    await service.stop({ drainMs })
  }
  deps.output.err('postern: stopped; queued emails are sent by another process, or after the next start')
}

const nextSteps = (hasConsole: boolean): string =>
  hasConsole
    ? 'Next: run "postern console login" and open its link (or: postern app create, then postern key create)'
    : 'Next: postern app create, then postern key create'

function welcome({ version }: CliDeps, { urls }: RunningService): string {
  const listeners = [
    urls.api && `API ${urls.api}`,
    urls.links && `links ${urls.links}`,
    urls.authHooks && `auth hooks ${urls.authHooks}`,
    urls.reports && `reports ${urls.reports}`,
    urls.bounce && `bounces ${urls.bounce}`,
    urls.submission && `submission ${urls.submission}`,
    urls.submissions && `submission with TLS ${urls.submissions}`,
    urls.console && `console and management ${urls.console}`,
    `ops ${urls.ops}`,
  ]
  return `postern ${version} is ready: ${listeners.filter(Boolean).join(', ')}`
}
