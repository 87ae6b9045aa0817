/**
 * Transports: named lists of relays that apps may use. No answer has the URL of a relay, which holds its
 * secret. A change gives all relays again, so that no secret is sent to another host.
 */
import { type Static, Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import { nameAll } from '../../domain/counts.ts'
import { parseTransportName, relayPrefix, relaysPerTransport, transportsMax } from '../../domain/delivery/transport.ts'
import type { StoredTransport } from '../../store/transport-store.ts'
import type { Management } from '../context.ts'
import { always, type Context, forAdmins, operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { FindingResource, iso } from '../resources.ts'
import { checkTransports, usersOf } from '../service/check-transports.ts'

export const TransportResource = closed({
  name: Type.String(),
  relays: Type.Array(Type.String(), { description: 'Where its relays are, in the order in which they are tried.' }),
  fault: orNull(Type.String({ description: 'Why it cannot be used.' })),
  apps: Type.Array(Type.String(), { description: 'The slugs of the apps that use it.' }),
  createdAt: time(),
  changedAt: time(),
})
export type TransportResource = Static<typeof TransportResource>

/** Its relays without its own name, which all their names begin with. */
const placesOf = (name: string, relays: readonly { readonly name: string }[]): string[] =>
  relays.map((relay) => relay.name.slice(relayPrefix(name).length))

function presentTransport(
  { transports }: Pick<Management, 'transports'>,
  stored: StoredTransport,
  apps: readonly App[],
): TransportResource {
  const { changedAt, createdAt, name } = stored
  const { faults, relays } = transports.open(stored)
  return {
    name,
    relays: placesOf(name, relays),
    fault: faults[0]?.text ?? null,
    apps: usersOf(name, apps).map(({ slug }) => slug),
    createdAt: iso(createdAt),
    changedAt: iso(changedAt),
  }
}

const transportNotFound = (name: string) => fail('not_found', `There is no transport "${name}".`)

const findTransport = async ({ store }: Context, name: string): Promise<StoredTransport | undefined> =>
  (await store.listTransports()).find((stored) => stored.name === name)

export const listTransports = operation({
  method: 'GET',
  path: '/v1/transports',
  role: 'reader',
  wholeService: true,
  summary: 'Lists the transports by name, with the places of their relays and the apps that use them.',
  answer: closed({ items: Type.Array(TransportResource) }),
  async run(context) {
    const [stored, apps] = await Promise.all([context.store.listTransports(), context.store.listApps()])
    return done({ items: stored.map((one) => presentTransport(context, one, apps)) })
  },
})

export const putTransport = operation({
  ...forAdmins,
  method: 'PUT',
  path: '/v1/transports/{transport}',
  summary: 'Creates a transport, or replaces all its relays. Every process that sends uses it within 5 seconds.',
  body: closed({
    relays: Type.Array(Type.String({ minLength: 1, examples: ['smtp://user:password@smtp.example.com:587'] }), {
      description:
        'URLs as in POSTERN_SMTP_URL, in the order in which they are tried. They name no files, and no relay in a private network unless POSTERN_TRANSPORTS_PRIVATE allows it.',
    }),
  }),
  answer: TransportResource,
  creates: true,
  outlives: always,
  errors: ['too_many_transports'],
  async run(context, { params: { transport: name }, body: { relays: urls } }) {
    const { access, store, transports } = context
    const named = parseTransportName(name)
    if (!named.ok) return invalid(named.issues)
    const given = transports.read(name, urls)
    if (given.faults.length > 0)
      return invalid(
        given.faults.map(({ index, text }) => ({
          field: index === null ? 'relays' : `relays.${index}`,
          code: 'malformed_relay',
          message: index === null ? text : `relay ${index + 1}: ${text}`,
        })),
      )
    const known = await findTransport(context, name)
    const before = known === undefined ? null : placesOf(name, transports.open(known).relays)
    const after = placesOf(name, given.relays)
    const stored = await store.putTransport({ name, sealed: transports.seal(name, urls), before, after }, access.actor)
    if (stored === 'too_many')
      return fail('too_many_transports', `There are ${transportsMax} transports: remove one that no app uses.`)
    return done(presentTransport(context, stored, await store.listApps()), { created: known === undefined })
  },
})

export const checkTransport = operation({
  method: 'POST',
  path: '/v1/transports/{transport}/check',
  role: 'operator',
  wholeService: true,
  summary: `Connects to each relay of a transport (${relaysPerTransport} at most), logs in, and sends no email. Takes up to 30 s.`,
  answer: closed({ ok: Type.Boolean(), findings: Type.Array(FindingResource) }),
  costly: true,
  errors: ['not_found'],
  async run(context, { params: { transport: name } }) {
    const { access, bounceAddress, store, transports } = context
    const stored = await findTransport(context, name)
    if (stored === undefined) return transportNotFound(name)
    const opened = transports.open(stored)
    const findings =
      opened.faults.length > 0
        ? opened.faults.map(({ text }) => ({ check: `transport ${name}`, ok: false, detail: text }))
        : await checkTransports([{ name, ...opened }], { apps: await store.listApps(), bounceAddress })
    await store.recordAction(
      { action: 'checks.run', app: null, target: `transport ${name}`, before: null, after: null },
      access.actor,
    )
    return done({ ok: findings.every(({ ok }) => ok), findings })
  },
})

export const deleteTransport = operation({
  ...forAdmins,
  method: 'DELETE',
  path: '/v1/transports/{transport}',
  summary: 'Removes a transport that no app uses.',
  answer: TransportResource,
  errors: ['not_found', 'transport_in_use'],
  async run(context, { params: { transport: name } }) {
    const { access, store } = context
    const stored = await findTransport(context, name)
    if (stored === undefined) return transportNotFound(name)
    const users = usersOf(name, await store.listApps())
    if (users.length > 0)
      return fail(
        'transport_in_use',
        `${nameAll(users.map(({ slug }) => slug))} still ${users.length === 1 ? 'uses' : 'use'} the transport ${name}: choose another one in the settings first.`,
      )
    if (!(await store.deleteTransport(name, access.actor))) return transportNotFound(name)
    return done(presentTransport(context, stored, []))
  },
})
