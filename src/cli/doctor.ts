/**
 * `postern doctor`: looks at everything that `serve` needs and says what is wrong, in the order in
 * which one would mend it. Sends no email.
 */
import type { Command } from 'commander'
import { type Config, ConfigError } from '../config/parse-config.ts'
import { SmtpSession } from '../delivery/relay/smtp/smtp-session.ts'
import type { Finding } from '../store/store.ts'
import type { CliDeps } from './context.ts'
import { CommandFailed, print } from './output.ts'

const relayMs = 30_000

export function addDoctorCommand(program: Command, deps: CliDeps): void {
  program
    .command('doctor')
    .description('check configuration, database, disk and relays')
    .action(async () => {
      const findings = await examine(deps)
      const ok = findings.every((finding) => finding.ok)
      print(deps.output, { ok, findings }, () =>
        findings
          .map(({ check, ok: well, detail }) => `${well ? 'ok  ' : 'FAIL'}  ${check}: ${detail}`)
          .join('\n'),
      )
      if (!ok) throw new CommandFailed('the doctor found faults; see above')
    })
}

async function examine(deps: CliDeps): Promise<Finding[]> {
  const node: Finding = { check: 'node', ok: true, detail: process.version }
  try {
    const config = deps.parseConfig(deps.env, 'serve')
    const relays = await Promise.all(config.relays.map(examineRelay))
    return [
      node,
      { check: 'configuration', ok: true, detail: 'complete' },
      ...(await examineStore(deps, config)),
      ...relays,
    ]
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return [node, ...error.faults.map((detail) => ({ check: 'configuration', ok: false, detail }))]
  }
}

async function examineStore(deps: CliDeps, config: Config): Promise<Finding[]> {
  try {
    const store = await deps.openStore(config)
    const { depth } = await store.queueGauge()
    const findings = await store.examine()
    await store.close()
    return [{ check: 'database', ok: true, detail: `opens, durable, ${depth} emails queued` }, ...findings]
  } catch (error) {
    return [{ check: 'database', ok: false, detail: error instanceof Error ? error.message : String(error) }]
  }
}

async function examineRelay({ address }: Config['relays'][number]): Promise<Finding> {
  const check = `relay ${address.host}:${address.port}`
  const session = await SmtpSession.open(address, AbortSignal.timeout(relayMs))
  if (!(session instanceof SmtpSession)) return { check, ok: false, detail: session.reply ?? session.fault }
  session.quit()
  const how = address.tls === 'none' ? 'without TLS (loopback)' : 'over verified TLS'
  return {
    check,
    ok: true,
    detail: `answers ${how}${address.credentials === null ? '' : ' and takes the credentials'}`,
  }
}
