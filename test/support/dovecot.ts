/**
 * A real Dovecot in its own folder: as a submission server that takes XOAUTH2 alone, asks about each token,
 * and relays to another port; or as a mailbox that is read by IMAP.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toolPath } from './installed.ts'
import { freePort } from './ports.ts'
import { isListening } from './postfix.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'
import { eventually } from './wait.ts'

type Kind = {
  readonly protocol: 'submission' | 'imap'
  /** Lines of dovecot.conf, about who may sign in and what is done then. */
  readonly settings: string
}

async function start(scope: Scope, folder: string, { protocol, settings }: Kind) {
  const port = await freePort()
  for (const name of ['run', 'state']) mkdirSync(join(folder, name))
  const log = join(folder, 'log')
  writeFileSync(
    join(folder, 'dovecot.conf'),
    `protocols = ${protocol}
base_dir = ${join(folder, 'run')}
state_dir = ${join(folder, 'state')}
log_path = ${log}
ssl = no
disable_plaintext_auth = no
hostname = dovecot.test
mail_location = maildir:${join(folder, 'home')}
default_internal_user = dovecot
default_login_user = dovenull
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=${join(folder, 'home')}
}
service ${protocol}-login {
  inet_listener ${protocol} {
    address = 127.0.0.1
    port = ${port}
  }
}
service stats {
  unix_listener stats-writer {
    mode = 0666
  }
}
${settings}
`,
  )
  const child = spawn(toolPath('dovecot'), ['-F', '-c', join(folder, 'dovecot.conf')], { stdio: 'ignore' })
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

/** A folder that Dovecot's users may enter, with the mailbox `home` in it. */
function makeFolder(scope: Scope): string {
  const folder = temporaryFolder(scope)
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, 'home'))
  chmodSync(join(folder, 'home'), 0o777)
  return folder
}

export function startDovecot(scope: Scope, { nextPort, introspect }: { nextPort: number; introspect: string }) {
  const folder = makeFolder(scope)
  const oauth = join(folder, 'oauth2.conf')
  writeFileSync(
    oauth,
    `introspection_mode = post\nintrospection_url = ${introspect}\nusername_attribute = email\nactive_attribute = active\nactive_value = true\n`,
  )
  const settings = `auth_mechanisms = xoauth2
submission_relay_host = 127.0.0.1
submission_relay_port = ${nextPort}
passdb {
  driver = oauth2
  mechanisms = xoauth2
  args = ${oauth}
}`
  return start(scope, folder, { protocol: 'submission', settings })
}

/** A mailbox of any user, whose password is `secret`, read by IMAP. */
export async function startMailbox(scope: Scope) {
  const folder = makeFolder(scope)
  const settings = 'passdb {\n  driver = static\n  args = password=secret\n}'
  const server = await start(scope, folder, { protocol: 'imap', settings })
  const place = (name: string) => join(folder, 'home', name)
  for (const name of ['tmp', 'new', 'cur']) {
    mkdirSync(place(name), { recursive: true })
    chmodSync(place(name), 0o777)
  }
  let serial = 0
  return {
    ...server,
    /** Puts a message into the mailbox, as a mail server does. */
    put: (message: string) => {
      const file = join(place('new'), `${Date.now()}.${serial++}.test`)
      writeFileSync(file, message.replaceAll('\r\n', '\n'))
      chmodSync(file, 0o666)
    },
    /** Messages in the mailbox. */
    count: () => readdirSync(place('new')).length + readdirSync(place('cur')).length,
  }
}
