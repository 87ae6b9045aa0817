/** A real PgBouncer in transaction mode before a PostgreSQL server. */
import { spawn } from 'node:child_process'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toolPath } from './installed.ts'
import { freePort } from './ports.ts'
import { canConnect } from './postgres.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'
import { eventually } from './wait.ts'

const nobody = 65_534

/** `url` is Postern's URL of the server; the result is the same database through the pooler. */
export async function startPgbouncer(scope: Scope, url: string): Promise<string> {
  const { hostname, port: serverPort } = new URL(url)
  const port = await freePort()
  const folder = temporaryFolder(scope)
  const [config, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'users.txt')]
  writeFileSync(users, '"postgres" ""\n')
  writeFileSync(
    config,
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = 20
`,
  )
  const isRoot = process.getuid?.() === 0 // PgBouncer refuses root
  if (isRoot) for (const path of [folder, config, users]) chownSync(path, nobody, nobody)
  const user = isRoot ? { uid: nobody, gid: nobody } : {}
  const child = spawn(toolPath('pgbouncer'), ['-q', config], { ...user, cwd: '/', stdio: 'ignore' })
  atEnd(scope, () => child.kill('SIGKILL'))
  const through = url.replace(/@[^/]+\//, `@127.0.0.1:${port}/`)
  await eventually(() => canConnect(through))
  return through
}
