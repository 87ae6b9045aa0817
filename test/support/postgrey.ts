/** A real postgrey, asked by Postfix's protocol for policy servers. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync } from 'node:fs'
import { connect } from 'node:net'
import { toolPath } from './installed.ts'
import { freePort } from './ports.ts'
import { isListening } from './postfix.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'
import { eventually } from './wait.ts'

/** Starts postgrey. It defers a sender and recipient that it does not know, for a second. */
export async function startPostgrey(scope: Scope) {
  const folder = temporaryFolder(scope)
  const [user, group] = ['-u', '-g'].map((option) => Number(execFileSync('id', [option, 'postgrey'])))
  chownSync(folder, user ?? 0, group ?? 0)
  chmodSync(folder, 0o700)
  const port = await freePort()
  const child = spawn(
    toolPath('postgrey'),
    [`--inet=127.0.0.1:${port}`, '--delay=1', `--dbdir=${folder}`, `--pidfile=${folder}/pid`],
    { stdio: 'ignore' },
  )
  atEnd(scope, async () => {
    const ended = child.exitCode === null ? once(child, 'exit') : null
    // It may miss a SIGTERM that comes right before it waits for connections.
    child.kill('SIGKILL')
    await ended
  })
  await eventually(() => {
    if (child.exitCode !== null) throw new Error('postgrey ended')
    return isListening(port)
  })
  // One connection, as Postfix has: of hundreds in a second, postgrey sometimes leaves one without an answer.
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  atEnd(scope, () => socket.destroy())
  return {
    /** Whether the recipient's server takes mail from `sender` now, and does not defer it. */
    async takes(sender: string, recipient: string): Promise<boolean> {
      const names = {
        request: 'smtpd_access_policy',
        client_address: '192.0.2.1',
        client_name: 'unknown',
        sender,
        recipient,
      }
      const lines = Object.entries(names).map(([name, value]) => `${name}=${value}\n`)
      socket.write(`${lines.join('')}\n`)
      const [answer] = await once(socket, 'data')
      if (!/^action=(DEFER_IF_PERMIT|DUNNO|PREPEND)\b/i.test(answer)) throw new Error(answer)
      return !answer.startsWith('action=DEFER')
    },
  }
}
