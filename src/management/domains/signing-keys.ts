/**
 * The domain of an app, and the keys that sign its mail. Apps of one domain share its keys, so changes need
 * the whole service.
 */
import { type Static, Type } from 'typebox'
import { checkKey } from '../../dns/check-domain.ts'
import {
  newSelector,
  type SigningKey,
  signingAlgorithms,
  signingKeyStates,
  signingKeysMax,
} from '../../domain/delivery/signing-key.ts'
import { dkimName, formatDkimRecord } from '../../domain/dns/dkim-record.ts'
import { isInScope } from '../operation/access.ts'
import { always, forAdmins, operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { iso, present } from '../resources.ts'
import { type Line, LineResource, presentRecord, RecordResource } from './domain-resources.ts'
import { fromDomain } from './domain-subject.ts'

export const SigningKeyResource = closed({
  selector: Type.String(),
  algorithm: Type.Enum([...signingAlgorithms]),
  state: Type.Enum([...signingKeyStates], {
    description:
      'pending: its record is to be published. active: it signs. retired: another key signs; leave its record for 7 days.',
  }),
  record: RecordResource,
  createdAt: time(),
  changedAt: time(),
})
export type SigningKeyResource = Static<typeof SigningKeyResource>

const presentSigningKey = (key: SigningKey): SigningKeyResource => {
  const record = { name: dkimName(key.selector, key.domain), value: formatDkimRecord(key.algorithm, key.publicKey) }
  return present(SigningKeyResource, { ...key, record: presentRecord(record) })
}

const signingKeyNotFound = (selector: string, domain: string) =>
  fail('not_found', `There is no signing key "${selector}" of ${domain}.`)

export const showDomain = operation({
  method: 'GET',
  path: '/v1/apps/{app}/domain',
  role: 'reader',
  summary: 'Shows the domain of the app’s From address, and the keys that sign its mail with the records to publish.',
  answer: closed({
    domain: Type.String(),
    apps: Type.Array(Type.String(), {
      description: 'The slugs of the apps that send from this domain, of those that you see: they share its keys.',
    }),
    keys: Type.Array(SigningKeyResource),
    lastCheck: orNull(closed({ at: time(), lines: Type.Array(LineResource) })),
  }),
  async run({ access, store }, _input, app) {
    const domain = fromDomain(app)
    const [keys, apps, kept] = await Promise.all([
      store.listSigningKeys(domain),
      store.listApps(),
      store.findCheck(app.id),
    ])
    const sharing = apps.filter((other) => isInScope(access, other.id) && fromDomain(other) === domain)
    return done({
      domain,
      apps: sharing.map(({ slug }) => slug),
      keys: keys.map(presentSigningKey),
      lastCheck: kept && { at: iso(kept.at), lines: kept.result as Line[] },
    })
  },
})

export const addKey = operation({
  ...forAdmins,
  method: 'POST',
  path: '/v1/apps/{app}/domain/keys',
  summary: 'Makes a key for the domain, which signs nothing until it is activated: publish its record first.',
  body: closed({
    algorithm: Type.Optional(
      Type.Enum([...signingAlgorithms], {
        description: 'rsa (default), which all receivers verify, or ed25519, in addition to it.',
      }),
    ),
  }),
  answer: SigningKeyResource,
  outlives: always,
  creates: true,
  errors: ['too_many_keys', 'name_taken'],
  async run({ access, makeSigningKey, store }, { body: { algorithm = 'rsa' } }, app) {
    const domain = fromDomain(app)
    const known = await store.listSigningKeys(domain)
    if (known.length >= signingKeysMax) return tooManyKeys(domain)
    const selector = newSelector(
      algorithm,
      store.now(),
      known.map((key) => key.selector),
    )
    const key = await makeSigningKey({ domain, selector, algorithm })
    const added = await store.addSigningKey({ ...key, app: app.id }, access.actor)
    if (added === 'too_many') return tooManyKeys(domain)
    if (added === 'taken')
      return fail('name_taken', `Somebody else has just added ${selector} to ${domain}: try again.`)
    return done(presentSigningKey(added), { created: true })
  },
})

const tooManyKeys = (domain: string) =>
  fail('too_many_keys', `${domain} has ${signingKeysMax} signing keys: remove retired ones.`)

export const activateKey = operation({
  ...forAdmins,
  method: 'POST',
  path: '/v1/apps/{app}/domain/keys/{selector}/activate',
  summary:
    'Signs the mail of the domain with this key, within 30 s, and retires the one before it. Its record must be in DNS.',
  body: closed({
    unchecked: Type.Optional(
      Type.Boolean({ description: 'True: do not ask DNS first, where this machine cannot reach it.' }),
    ),
  }),
  answer: SigningKeyResource,
  outlives: always,
  errors: ['record_missing'],
  async run({ access, newLookup, store }, { body: { unchecked = false }, params: { selector } }, app) {
    const domain = fromDomain(app)
    const key = (await store.listSigningKeys(domain)).find((candidate) => candidate.selector === selector)
    if (key === undefined) return signingKeyNotFound(selector, domain)
    if (!unchecked) {
      const { message, result } = await checkKey(domain, { ...key, state: 'active' }, newLookup())
      if (result === 'fail' || result === 'unknown') {
        const why = result === 'fail' ? ', because mail would be refused' : ''
        return fail('record_missing', `${selector} was not activated${why}. ${message}`)
      }
    }
    const activated = await store.activateSigningKey({ domain, selector, app: app.id }, access.actor)
    return activated === null ? signingKeyNotFound(selector, domain) : done(presentSigningKey(activated))
  },
})

export const removeKey = operation({
  ...forAdmins,
  method: 'DELETE',
  path: '/v1/apps/{app}/domain/keys/{selector}',
  summary: 'Removes a key of the domain. Without an active key, its mail is not signed.',
  answer: SigningKeyResource,
  async run({ access, store }, { params: { selector } }, app) {
    const domain = fromDomain(app)
    const removed = await store.removeSigningKey({ domain, selector, app: app.id }, access.actor)
    return removed === null ? signingKeyNotFound(selector, domain) : done(presentSigningKey(removed))
  },
})
