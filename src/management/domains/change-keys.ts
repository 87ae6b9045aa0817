/** Changes of the keys that sign mail. Apps of one domain share its keys, so these need the whole service. */
import { Type } from 'typebox'
import { checkKey } from '../../dns/check-domain.ts'
import { newSelector, signingAlgorithms, signingKeysMax } from '../../domain/delivery/signing-key.ts'
import { always, forAdmins, operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { fromDomain } from './domain-subject.ts'
import { presentSigningKey, SigningKeyResource, signingKeyNotFound } from './signing-key-resource.ts'

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
