/** A real Postfix in its own folder. It takes mail on a free port and relays all of it to another port. */
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { toolPath } from './installed.ts'
import { freePort } from './ports.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'

const services = `
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
error unix - - n - - error
retry unix - - n - - error
smtp unix - - n - - smtp
relay unix - - n - - smtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
proxymap unix - - n - - proxymap
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
`

export const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })

/** Starts Postfix, relaying to `nextPort`. `more` are settings of main.cf. */
export async function startPostfix(
  scope: Scope,
  nextPort: number,
  more: Readonly<Record<string, string>> = {},
): Promise<{
  port: number
  /** Tries the deferred mail now. Postfix waits five minutes if the last attempt still holds a lock. */
  flush: () => void
}> {
  const folder = temporaryFolder(scope)
  chmodSync(folder, 0o755)
  const port = await freePort()
  const user = Number(execFileSync('id', ['-u', 'postfix'], { encoding: 'utf8' }))
  for (const name of ['queue', 'data', 'etc']) mkdirSync(join(folder, name))
  chownSync(join(folder, 'data'), user, 0)
  const main = {
    compatibility_level: '3.6',
    queue_directory: join(folder, 'queue'),
    data_directory: join(folder, 'data'),
    command_directory: '/usr/sbin',
    daemon_directory: '/usr/lib/postfix/sbin',
    mail_owner: 'postfix',
    setgid_group: 'postdrop',
    myhostname: 'relay.acme.test',
    inet_interfaces: '127.0.0.1',
    inet_protocols: 'ipv4',
    mynetworks: '127.0.0.0/8',
    mydestination: '',
    relayhost: `[127.0.0.1]:${nextPort}`,
    alias_maps: '',
    maillog_file: '/dev/null',
    maillog_file_prefixes: '/dev',
    smtp_dns_support_level: 'disabled',
    smtpd_recipient_restrictions: 'permit_mynetworks,reject',
    ...more,
  }
  const lines = Object.entries(main).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(join(folder, 'etc/main.cf'), `${lines.join('\n')}\n`)
  writeFileSync(join(folder, 'etc/master.cf'), `127.0.0.1:${port} inet n - n - - smtpd${services}`)
  const postfix = (command: string) =>
    execFileSync(toolPath('postfix'), ['-c', join(folder, 'etc'), command], { stdio: 'ignore' })
  postfix('start')
  atEnd(scope, () => postfix('stop'))
  return { port, flush: () => postfix('flush') }
}
