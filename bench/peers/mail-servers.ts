/** Mail software to compare with. A benchmark prints a message for what is not installed, and continues. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../../test/support/ports.ts'
import { startPostfix } from '../../test/support/postfix.ts'
import { atEnd, type Scope, temporaryFolder } from '../../test/support/temporary.ts'
import { eventually } from '../../test/support/wait.ts'

const isRoot = process.getuid?.() === 0

export type Peer = { readonly name: string; readonly port: number }

const smtpSource = '/usr/sbin/smtp-source'

/** SMTP servers that sync one file for each email before its 250, and do not send the email on. */
export async function startMailServers(scope: Scope): Promise<Peer[]> {
  if (!existsSync(smtpSource)) {
    console.log('skipping other mail servers: their load needs smtp-source, from the package postfix')
    return []
  }
  const peers = [await startHoldingPostfix(scope), await startHaraka(scope)]
  return peers.filter((peer) => peer !== null)
}

/** Emails per second that a server takes from Postfix's load generator over connections that stay open. */
export async function offerMail(port: number, options: { clients: number; emails: number }): Promise<number> {
  const begunMs = performance.now()
  const { clients, emails } = options
  const message = ['-l', '500', '-f', 'auth@acme.test', '-t', 'person@example.com']
  const load = ['-d', '-s', String(clients), '-m', String(emails), ...message, `127.0.0.1:${port}`]
  await promisify(execFile)(smtpSource, load)
  return (emails * 1000) / (performance.now() - begunMs)
}

/**
 * The process limit is above the number of clients, as Postfix's TUNING_README advises. Postfix does not
 * look up the client's name.
 */
async function startHoldingPostfix(scope: Scope): Promise<Peer | null> {
  if (!isRoot) {
    console.log('skipping Postfix: it needs root')
    return null
  }
  const { port } = await startPostfix(scope, await freePort(), {
    smtpd_client_restrictions: 'static:HOLD',
    default_process_limit: '300',
    smtpd_peername_lookup: 'no',
    in_flow_delay: '0',
  })
  return { name: 'Postfix over SMTP', port }
}

/** Default settings and one process, like Postern. Relays for this machine, with outbound delivery off. */
async function startHaraka(scope: Scope): Promise<Peer | null> {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const program = folders.map((folder) => join(folder, 'haraka')).find((file) => existsSync(file))
  if (program === undefined) {
    console.log('skipping Haraka: it is not on the PATH')
    return null
  }
  const port = await freePort()
  const folder = temporaryFolder(scope)
  for (const name of ['config', 'queue']) mkdirSync(join(folder, name))
  const files = {
    me: 'bench.test',
    plugins: 'relay',
    'relay.ini': '[relay]\nacl=true',
    relay_acl_allow: '127.0.0.1/32',
    'smtp.ini': `listen=127.0.0.1:${port}\nnodes=0`,
    'outbound.ini': 'disabled=true',
    loglevel: 'error',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'config', name), `${text}\n`)
  const child = spawn(process.execPath, [realpathSync(program), '-c', folder], { stdio: 'ignore' })
  atEnd(scope, async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  await eventually(() => answers(port))
  return { name: 'Haraka over SMTP', port }
}

/** Postfix's `smtp-sink`. */
export async function startSmtpSink(scope: Scope): Promise<{ port: number } | null> {
  const program = '/usr/sbin/smtp-sink'
  if (!existsSync(program)) {
    console.log("skipping Postfix's smtp-sink: it needs the package postfix")
    return null
  }
  const port = await freePort()
  const child = spawn(program, [...(isRoot ? ['-u', 'nobody'] : []), `127.0.0.1:${port}`, '256'])
  atEnd(scope, () => child.kill('SIGKILL'))
  await eventually(() => answers(port))
  return { port }
}

export async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
