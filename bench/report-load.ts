/** The load of reports on the bounce listener, as a process of its own: connections that stay open. */
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { writeReport } from '../test/support/reports.ts'
import { type LoopOrder, runLoop } from './loop.ts'

export type ReportOrder = LoopOrder & {
  readonly port: number
  /** The bounce address and the recipient of an email for each report, from report `serial` on. */
  readonly emails: readonly (readonly [bounceAddress: string, recipient: string])[]
}

async function open(port: number): Promise<SMTPConnection> {
  const connection = new SMTPConnection({ host: '127.0.0.1', port, ignoreTLS: true, logger: false })
  await new Promise<void>((resolve, reject) => connection.connect((error) => (error ? reject(error) : resolve())))
  return connection
}

process.on('message', async (order: ReportOrder) => {
  const connections = await Promise.all(Array.from({ length: order.clients }, () => open(order.port)))
  const ask = (client: number, n: number) => {
    const [to = '', recipient = ''] = order.emails[n - order.serial] ?? []
    return new Promise<string>((resolve) => {
      const report = writeReport({ to, recipient })
      connections[client]?.send({ from: '', to }, report, (error) => resolve(error === null ? '250' : String(error)))
    })
  }
  process.send?.(await runLoop(order, ask))
  for (const connection of connections) connection.quit()
})
