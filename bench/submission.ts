/**
 * The submission listener while the relay is down: the answer to each message at a steady rate, and how long
 * spoilt messages hold the event loop, in processor time.
 */
import { join } from 'node:path'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { freePort } from '../test/support/ports.ts'
import { newSender } from '../test/support/service.ts'
import { spoilMails } from '../test/support/spoilt-mails.ts'
import { connectSystem, submissionSettings } from '../test/support/submission.ts'
import { type Scope, temporaryFolder } from '../test/support/temporary.ts'
import { type LoopOrder, type LoopResult, runLoop } from './loop.ts'
import { measureHolds, readLongestHold } from './loop-holds.ts'
import { count, report } from './measure.ts'
import { type Bed, makeBed, type Subject, startPostern, subjects, useStore } from './processes.ts'

const clients = 20
const steady: LoopOrder = { clients, ms: 10_000, rate: 100, serial: 1_000_000 }
const warming: LoopOrder = { ...steady, serial: 0 }
const hostile: LoopOrder = { clients, ms: 50_000, rate: 200, serial: 0 }
const spoilt = 10_000

export async function run(scope: Scope): Promise<void> {
  const rows: string[][] = []
  const services = []
  for (const subject of subjects) services.push(await startListener(scope, subject))
  for (const { name, offer } of services) {
    await offer(warming, usual)
    rows.push(toRow(name, '100 a second', await offer(steady, usual)))
  }
  // Made late: so much memory slows this process down.
  const bytes: Buffer[] = []
  for await (const mail of spoilMails(spoilt, 1)) bytes.push(mail.bytes)
  const one = (n: number) => bytes[n % spoilt] ?? Buffer.alloc(0)
  for (const { name, offer } of services) rows.push(toRow(name, 'spoilt, 200 a second', await offer(hostile, one)))
  const columns = [
    'engine',
    'messages',
    'p50 ms',
    'p99 ms',
    '250',
    'refused',
    'longest hold of the loop, ms of processor',
  ]
  report('submission', { 'From the end of each message to its answer, relay down': { columns, rows } }, rows)
}

const usual = (n: number) =>
  Buffer.from(`Subject: Reset\r\n\r\nhttps://app.acme.test/admin/reset-password?token=n${n}\r\n`)

async function startListener(scope: Scope, subject: Subject) {
  const bed = await makeBed(scope, subject)
  const secret = await connect(bed)
  const port = await freePort()
  const holds = join(temporaryFolder(scope), 'holds')
  await startPostern(scope, bed, {
    ...measureHolds(holds),
    POSTERN_ROLES: 'api,submission,worker',
    POSTERN_SUBMISSION_LISTEN: `127.0.0.1:${port}`,
    POSTERN_LINKS_BASE_URL: 'https://links.acme.test',
  })
  const offer = async (order: LoopOrder, messageOf: (n: number) => Buffer): Promise<Offered> => {
    readLongestHold(holds) // forgets what was before
    const result = await load({ ...order, port, secret }, messageOf)
    return { result, holdMs: readLongestHold(holds) }
  }
  return { name: subject.name, offer }
}

type Offered = { readonly result: LoopResult; readonly holdMs: number }

function toRow(engine: string, messages: string, { holdMs, result }: Offered): string[] {
  const { answers, p50Ms, p99Ms } = result
  const refused = Object.entries(answers).reduce((sum, [code, n]) => (code === '250' ? sum : sum + n), 0)
  const times = [p50Ms, p99Ms].map((ms) => ms.toFixed(1))
  return [engine, messages, ...times, count(answers['250'] ?? 0), count(refused), holdMs.toFixed(0)]
}

/** Makes an app with a secret of Directus; returns the secret. */
const connect = (bed: Bed): Promise<string> =>
  useStore(bed, async (store) => {
    const { app } = await newSender({ store }, 'mail', submissionSettings)
    return connectSystem(store, app.id, 'directus')
  })

async function load(
  { port, secret, ...order }: LoopOrder & { readonly port: number; readonly secret: string },
  messageOf: (n: number) => Buffer,
): Promise<LoopResult> {
  const connections = await Promise.all(Array.from({ length: order.clients }, () => open(port, secret)))
  const result = await runLoop(order, (client, n) => {
    const envelope = { from: 'cms@acme.test', to: `n${n}@example.com` }
    return new Promise((resolve) => {
      connections[client]?.send(envelope, messageOf(n), (error, info) =>
        resolve(String((error as { responseCode?: number } | null)?.responseCode ?? info?.response?.slice(0, 3))),
      )
    })
  })
  for (const connection of connections) connection.quit()
  return result
}

async function open(port: number, pass: string): Promise<SMTPConnection> {
  const connection = new SMTPConnection({ host: '127.0.0.1', port, ignoreTLS: true, logger: false })
  await new Promise<void>((resolve, reject) => connection.connect((error) => (error ? reject(error) : resolve())))
  await new Promise<void>((resolve, reject) =>
    connection.login({ credentials: { user: 'mail', pass } }, (error) => (error ? reject(error) : resolve())),
  )
  return connection
}
