/**
 * Upper bound for a sender: one prepared message over `SMTPConnection`s that stay open, nothing stored,
 * nothing rendered. The baseline for delivery. Runs as a process of its own.
 */
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { composeMessage } from '../src/delivery/message/compose-message.ts'
import type { Reference } from '../src/domain/delivery/reference.ts'
import { newId } from '../src/domain/id.ts'
import type { EmailAddress } from '../src/domain/request/email-address.ts'
import { testSettings } from '../test/support/service.ts'
import { type LoopOrder, runLoop } from './loop.ts'

export type DirectOrder = LoopOrder & { readonly port: number }

function prepareMessage(): Buffer {
  const now = Date.now()
  const claim = {
    type: 'magic_link' as const,
    acceptedAt: now,
    ageMs: 0,
    expiresAt: now + 3_600_000,
    content: {
      to: 'person1@example.com' as EmailAddress,
      url: `https://app.acme.test/auth/magic?token=${'x'.repeat(43)}`,
      messageIdDomain: 'acme.test',
    },
  }
  const reference = `${newId('em', now)}.0123456789` as Reference
  const app = { id: newId('app', now), version: 1, slug: 'acme', settings: testSettings }
  return composeMessage({ claim, reference, app, lifeLeftMs: 3_600_000 })
}

async function open(port: number): Promise<SMTPConnection> {
  const connection = new SMTPConnection({ host: '127.0.0.1', port, ignoreTLS: true, logger: false })
  await new Promise<void>((resolve, reject) => connection.connect((error) => (error ? reject(error) : resolve())))
  return connection
}

const message = prepareMessage()

process.on('message', async (order: DirectOrder) => {
  const connections = await Promise.all(Array.from({ length: order.clients }, () => open(order.port)))
  const ask = (client: number, n: number) =>
    new Promise<string>((resolve) => {
      const envelope = { from: 'auth@acme.test', to: `person${n}@example.com`, size: message.length }
      connections[client]?.send(envelope, message, (error) => resolve(error === null ? '250' : String(error)))
    })
  process.send?.(await runLoop(order, ask))
  for (const connection of connections) connection.quit()
})
