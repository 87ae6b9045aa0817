/** A real name server for zones of a test. */
import { spawn } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toolPath } from './installed.ts'
import { freePort } from './ports.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'
import { eventually } from './wait.ts'

/** Records of a zone by lines, such as `mail TXT "v=spf1 -all"`. */
export type Zones = Readonly<Record<string, readonly string[]>>

const head = ['@ 1 SOA ns hostmaster 1 60 60 60 1', '@ 1 NS ns', 'ns 1 A 127.0.0.1']

/**
 * @param at the address to listen at, with port 53; a free port of loopback unless given
 * @param free a port of loopback that is free
 */
export async function startNsd(scope: Scope, zones: Zones, at?: string, free?: number) {
  const folder = temporaryFolder(scope)
  mkdirSync(join(folder, 'zones'))
  const port = at === undefined ? (free ?? (await freePort())) : 53
  const address = at ?? '127.0.0.1'
  const write = (name: string, lines: readonly string[]) =>
    writeFileSync(join(folder, 'zones', name), `${[...head, ...lines].join('\n')}\n`)
  for (const [name, lines] of Object.entries(zones)) write(name, lines)
  const names = Object.keys(zones)
  const config = join(folder, 'nsd.conf')
  writeFileSync(
    config,
    `server:
  ip-address: ${address}@${port}
  username: ""
  chroot: ""
  database: ""
  zonesdir: ${folder}/zones
  pidfile: ${folder}/pid
  xfrdfile: ${folder}/xfrd
  xfrdir: ${folder}
  zonelistfile: ${folder}/list
  server-count: 1
remote-control:
  control-enable: no
${names.map((name) => `zone:\n  name: ${name}\n  zonefile: ${name}\n`).join('')}`,
  )
  const child = spawn(toolPath('nsd'), ['-d', '-c', config], { stdio: 'ignore' })
  atEnd(scope, async () => {
    const ended = child.exitCode === null ? once(child, 'exit') : null
    child.kill('SIGTERM')
    await ended
  })
  const resolver = new Resolver({ timeout: 500, tries: 1 })
  resolver.setServers([`${address}:${port}`])
  const answers = (name: string) =>
    resolver.resolveSoa(name).then(
      () => true,
      () => false,
    )
  await eventually(() => {
    if (child.exitCode !== null) throw new Error('nsd ended')
    return answers(names[0] ?? '')
  })
  return { server: `${address}:${port}`, port }
}
