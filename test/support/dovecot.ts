/**
 * A real Dovecot as a submission server in its own folder: it takes XOAUTH2 alone, asks `introspect` about
 * each token, and relays to another port.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, isListening } from './postfix.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'
import { eventually } from './wait.ts'

export const dovecot = {
  'dovecot-core': '/usr/sbin/dovecot',
  'dovecot-submissiond': '/usr/lib/dovecot/submission',
}

export async function startDovecot(
  scope: Scope,
  { nextPort, introspect }: { nextPort: number; introspect: string },
) {
  const folder = temporaryFolder(scope)
  chmodSync(folder, 0o755)
  const port = await freePort()
  for (const name of ['run', 'state', 'home']) mkdirSync(join(folder, name))
  chmodSync(join(folder, 'home'), 0o777)
  const oauth = join(folder, 'oauth2.conf')
  writeFileSync(
    oauth,
    `introspection_mode = post\nintrospection_url = ${introspect}\nusername_attribute = email\nactive_attribute = active\nactive_value = true\n`,
  )
  const log = join(folder, 'log')
  writeFileSync(
    join(folder, 'dovecot.conf'),
    `protocols = submission
base_dir = ${join(folder, 'run')}
state_dir = ${join(folder, 'state')}
log_path = ${log}
ssl = no
disable_plaintext_auth = no
auth_mechanisms = xoauth2
hostname = dovecot.test
submission_relay_host = 127.0.0.1
submission_relay_port = ${nextPort}
mail_location = maildir:${join(folder, 'home')}
default_internal_user = dovecot
default_login_user = dovenull
passdb {
  driver = oauth2
  mechanisms = xoauth2
  args = ${oauth}
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=${join(folder, 'home')}
}
service submission-login {
  inet_listener submission {
    address = 127.0.0.1
    port = ${port}
  }
}
service stats {
  unix_listener stats-writer {
    mode = 0666
  }
}
`,
  )
  const child = spawn('/usr/sbin/dovecot', ['-F', '-c', join(folder, 'dovecot.conf')], { stdio: 'ignore' })
  atEnd(scope, async () => {
    const ended = child.exitCode === null ? once(child, 'exit') : null
    child.kill('SIGTERM')
    await ended
  })
  await eventually(() => {
    if (child.exitCode !== null) throw new Error(`Dovecot ended: see ${log}`)
    return isListening(port)
  })
  return { port, log }
}
