/** Others' software, where it is installed; without it a benchmark says so and goes on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { freePort, startPostfix } from '../test/support/postfix.ts'
import { atEnd, type Scope } from '../test/support/temporary.ts'
import { eventually } from '../test/support/wait.ts'

const isRoot = process.getuid?.() === 0

/**
 * Postfix takes mail and holds it, so that it does what Postern does on the way in: one file an
 * email, synced before the 250. Its process limit is above the number of clients, as its
 * TUNING_README advises; nothing of the message is looked up.
 */
export async function startHoldingPostfix(scope: Scope): Promise<{ port: number } | null> {
  if (!existsSync('/usr/sbin/smtp-source') || !isRoot) {
    console.log('without Postfix: it needs root and the package postfix')
    return null
  }
  return startPostfix(scope, await freePort(), {
    smtpd_client_restrictions: 'static:HOLD',
    default_process_limit: '300',
    smtpd_peername_lookup: 'no',
    in_flow_delay: '0',
  })
}

/** Postfix's own sink. */
export async function startSmtpSink(scope: Scope): Promise<{ port: number } | null> {
  const program = '/usr/sbin/smtp-sink'
  if (!existsSync(program)) {
    console.log("without Postfix's sink: it needs the package postfix")
    return null
  }
  const port = await freePort()
  const child = spawn(program, [...(isRoot ? ['-u', 'nobody'] : []), `127.0.0.1:${port}`, '256'])
  atEnd(scope, () => child.kill('SIGKILL'))
  await eventually(() => answers(port))
  return { port }
}

async function answers(port: number): Promise<boolean> {
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
