/**
 * Relays by themselves, over TLS on loopback: emails a second over some connections to a server that answers
 * after 100 ms, and the CPU of an email, by SMTP and by a mail API. The message is rendered once.
 */
import { newRelay } from '../src/compose/relays.ts'
import { composeMessage, formatDate, listMarks } from '../src/delivery/message/compose-message.ts'
import type { Message, Relay } from '../src/delivery/relay/relay.ts'
import type { RelayAddress } from '../src/delivery/relay/relay-address.ts'
import type { Reference } from '../src/domain/delivery/reference.ts'
import { newId } from '../src/domain/id.ts'
import type { EmailAddress } from '../src/domain/request/email-address.ts'
import { renderEmail } from '../src/templates/emails/render-email.ts'
import { newApiAddress } from '../test/support/api-relay.ts'
import { localCa as ca } from '../test/support/api-server.ts'
import { smtpTo, testSettings } from '../test/support/service.ts'
import type { Scope } from '../test/support/temporary.ts'
import { runLoop } from './loop.ts'
import { count, median, report } from './measure.ts'
import { type Sink, startSink } from './processes.ts'

const answerMs = 100
const cpuConnections = 10
const [rounds, roundMs] = [3, 3000]

type Kind = { readonly name: string; readonly sink: Sink; readonly address: RelayAddress }
type Round = { readonly perSecond: number; readonly cpuMicros: number }

export async function run(scope: Scope): Promise<void> {
  const [smtp, https] = [await startSink(scope, 'smtps'), await startSink(scope, 'https')]
  const kinds: readonly Kind[] = [
    { name: 'SMTP', sink: smtp, address: smtpTo(smtp.port, { host: 'localhost', tls: 'implicit', ca }) },
    {
      name: 'HTTPS (Postmark)',
      sink: https,
      address: { ...newApiAddress('postmark', `https://localhost:${https.port}`), ca },
    },
  ]
  const measureAll = async (connections: number, delayMs: number) => {
    const found: Round[] = []
    for (const kind of kinds) found.push(await measure(kind, connections, delayMs))
    return found
  }
  const waiting: (readonly [connections: number, found: readonly Round[]])[] = []
  for (const connections of [5, 20, 50]) waiting.push([connections, await measureAll(connections, answerMs)])
  const busy: (readonly Round[])[] = []
  for (let round = 0; round < rounds; round++) busy.push(await measureAll(cpuConnections, 0))
  const medianOf = (index: number, figure: keyof Round) =>
    median(busy.map((found) => found[index]?.[figure] ?? Number.NaN))
  report(
    'relays',
    {
      [`Emails a second, each answered after ${answerMs} ms`]: {
        columns: ['connections', ...kinds.map(({ name }) => name)],
        rows: waiting.map(([connections, found]) => [
          String(connections),
          ...found.map(({ perSecond }) => count(perSecond)),
        ]),
      },
      [`Over ${cpuConnections} connections, answered at once`]: {
        columns: ['relay', 'per second', 'CPU per email, µs', 'ratio'],
        rows: kinds.map(({ name }, index) => [
          name,
          count(medianOf(index, 'perSecond')),
          count(medianOf(index, 'cpuMicros')),
          (medianOf(index, 'cpuMicros') / medianOf(0, 'cpuMicros')).toFixed(2),
        ]),
      },
    },
    { waiting, busy },
  )
}

/** The first second opens the connections and warms up. */
async function measure({ name, sink, address }: Kind, connections: number, delayMs: number): Promise<Round> {
  await sink.report(delayMs)
  const bounds = { connectionsMax: connections, rate: null, takesReserved: true }
  const relay = newRelay({ name, address, ...bounds }, { random: Math.random, onChange: () => {} })
  try {
    await load(relay, connections, 1000)
    const before = process.cpuUsage()
    const { answers, perSecond } = await load(relay, connections, roundMs)
    const { system, user } = process.cpuUsage(before)
    if (Object.keys(answers).join() !== 'accepted') throw new Error(JSON.stringify(answers))
    return { perSecond, cpuMicros: (system + user) / (answers.accepted ?? 0) }
  } finally {
    relay.close()
  }
}

const load = (relay: Relay, clients: number, ms: number) =>
  runLoop({ clients, ms, rate: null, serial: 0 }, async () => {
    const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true }
    const submission = await relay.submit(message, clearance)
    return submission.kind === 'failed' ? submission.reply.text : submission.kind
  })

const message = prepareMessage()

function prepareMessage(): Message {
  const now = Date.now()
  const [id, type, slug, settings] = [newId('em', now), 'magic_link' as const, 'acme', testSettings]
  const [lifeLeftMs, expiresAt] = [3_600_000, now + 3_600_000]
  const url = `https://app.acme.test/auth/magic?token=${'x'.repeat(43)}`
  const content = { to: 'person1@example.com' as EmailAddress, url, messageIdDomain: 'acme.test' }
  const reference = `${id}.0123456789` as Reference
  const claim = { type, acceptedAt: now, ageMs: 0, expiresAt, content }
  const rendered = renderEmail({ ...claim, app: settings, lifeLeftMs })
  const headers = listMarks({ reference, expires: formatDate(expiresAt), type, slug, language: rendered.language })
  const { from } = settings
  const email = { id, app: settings.name, slug, from, replyTo: null, type, url, code: null, expiresAt }
  const details = { ...rendered, ...email, headers }
  return {
    ...{ id, attempt: 1, reference, to: content.to, from: from.address as EmailAddress, bounceTo: null, content },
    bytes: composeMessage({
      claim,
      reference,
      app: { id: newId('app', now), version: 1, slug, settings },
      lifeLeftMs,
    }),
    describe: () => details,
  }
}
