/** `postern serve` and `postern migrate`: production. */
import type { Command } from 'commander'
import type { CliDeps } from './context.ts'
import { print } from './output.ts'

/** Requests are still taken for so long after `/readyz` says no, so that balancers notice first. */
const drainMs = 1500

export function addServeCommands(program: Command, deps: CliDeps): void {
  program
    .command('serve')
    .description('run the service with an explicit configuration')
    .action(async () => {
      const service = await deps.startService(deps.parseConfig(deps.env, 'serve'))
      print(deps.output, { ready: true, ...service.urls }, () => {
        const api = service.urls.api === undefined ? '' : ` API ${service.urls.api},`
        return `postern is ready:${api} ops ${service.urls.ops}`
      })
      await deps.untilStopped()
      await service.stop({ drainMs })
    })
  program
    .command('migrate')
    .description('bring the database up to date (serve and dev do it too)')
    .action(async () => {
      const store = await deps.openStore(deps.parseConfig(deps.env, 'command'))
      await store.close()
      print(deps.output, { migrated: true }, () => 'the database is up to date')
    })
}
