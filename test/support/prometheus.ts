/** A real Prometheus that scrapes a service every second, with the rules that are shipped. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { toolPath } from './installed.ts'
import { freePort } from './ports.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'
import { eventually } from './wait.ts'

export const rules = fileURLToPath(new URL('../../deploy/prometheus/alerts.yaml', import.meta.url))

export type Sample = {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [number, string]
}
type Alert = { readonly labels: Readonly<Record<string, string>>; readonly state: string }

export async function startPrometheus(scope: Scope, target: string) {
  const folder = temporaryFolder(scope)
  const port = await freePort()
  const file = join(folder, 'prometheus.json') // YAML that is JSON
  writeFileSync(
    file,
    JSON.stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [rules],
      scrape_configs: [{ job_name: 'postern', static_configs: [{ targets: [new URL(target).host] }] }],
    }),
  )
  const child = spawn(
    toolPath('prometheus'),
    [`--config.file=${file}`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`],
    { stdio: 'ignore' },
  )
  atEnd(scope, async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const base = `http://127.0.0.1:${port}/api/v1`
  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`${base}/${path}`)
    const { status, data, error } = (await answer.json()) as { status: string; data: T; error?: string }
    if (status !== 'success') throw new Error(error)
    return data
  }
  const query = async (expression: string): Promise<readonly Sample[]> =>
    (await get<{ result: Sample[] }>(`query?query=${encodeURIComponent(expression)}`)).result
  await eventually(async () => (await query('postern_build_info').catch(() => [])).length > 0)
  return {
    query,
    /** How many emails have ended in this state. */
    finished: async (state: string) =>
      Number((await query(`sum(postern_emails_finished_total{state="${state}"})`))[0]?.value[1]),
    names: () => get<string[]>('label/__name__/values'),
    /** The alerts that fire now, and those whose time has not passed yet. */
    alerts: async () => {
      const { alerts } = await get<{ alerts: Alert[] }>('alerts')
      const of = (wanted: string) =>
        alerts.filter(({ state }) => state === wanted).map(({ labels }) => labels.alertname ?? '')
      return { firing: of('firing'), pending: of('pending') }
    },
  }
}
