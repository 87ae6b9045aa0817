/**
 * `npm run example`: Postern in dev mode and the app. Both keep their data in `.postern/` in this folder;
 * Ctrl-C stops both.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serve } from '@hono/node-server'
import { Postern } from '@postern/client'
import { newApp } from './app.ts'
import { startAuth } from './auth.ts'

const command = fileURLToPath(new URL('../../bin/postern.js', import.meta.url))
const folder = process.env.EXAMPLE_FOLDER ?? fileURLToPath(new URL('.', import.meta.url))
const port = Number(process.env.EXAMPLE_PORT ?? 3000)

/** Starts Postern's dev mode. Resolves when it is ready, with the addresses it prints. */
async function startPostern(): Promise<{ child: ChildProcess; apiUrl: string; inboxUrl: string }> {
  const child = spawn(process.execPath, [command, 'dev'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      if (printed.includes('Stop with')) resolve()
    })
    child.once('exit', () => reject(new Error('Postern did not start; what it said stands above.')))
  })
  const [, apiUrl = ''] = /^ {2}API +(\S+)\/v1\/email$/m.exec(printed) ?? []
  const [, inboxUrl = ''] = /^ {2}Inbox +(\S+)$/m.exec(printed) ?? []
  return { child, apiUrl, inboxUrl }
}

/** Stored: sessions survive a restart. */
function readSecret(): string {
  const path = join(folder, '.postern/auth-secret')
  if (!existsSync(path)) writeFileSync(path, randomBytes(32).toString('base64'), { mode: 0o600 })
  return readFileSync(path, 'utf8')
}

mkdirSync(join(folder, '.postern'), { recursive: true })
const { child, apiUrl, inboxUrl } = await startPostern()
process.once('exit', () => child.kill())
const deliveryKey = readFileSync(join(folder, '.postern/demo-key'), 'utf8').trim()
const origin = `http://localhost:${port}`
const auth = await startAuth({
  origin,
  databasePath: join(folder, '.postern/example.db'),
  secret: readSecret(),
  postern: new Postern({ deliveryKey, baseUrl: apiUrl }),
})
const server = serve({ fetch: newApp(auth, inboxUrl).fetch, port, hostname: 'localhost' }, () => {
  console.log(`\nThe example is at ${origin}, its emails at ${inboxUrl}.\nStop with Ctrl-C.`)
})
server.once('error', ({ message }) => {
  console.error(`${message}: EXAMPLE_PORT chooses another port.`)
  process.exit(1)
})

const stop = () => {
  server.close()
  child.kill('SIGTERM')
}
process.once('SIGINT', stop)
process.once('SIGTERM', stop)
child.once('exit', (code) => {
  if (code !== 0) console.error('Postern has ended; what it said stands above.')
  server.close()
})
