/**
 * People who sign in to the console: invited, listed, changed. They have no passwords: a link signs them in
 * the first time.
 */
import { Type } from 'typebox'
import { hasEnded } from '../../domain/bearer.ts'
import { minuteMs } from '../../domain/duration.ts'
import { roles } from '../../domain/operator/management-token.ts'
import { hashSignInCode, invitationMs, newSignInCode } from '../../domain/operator/sign-in.ts'
import type { PersonRecord } from '../../store/people-store.ts'
import { cutList, pageQuery } from '../operation/list-pages.ts'
import { findScope, parseActorName, scopeField } from '../operation/name-fields.ts'
import { always, type Context, forAdmins, operation } from '../operation/operation.ts'
import { done, fail, invalid, type Result } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { iso, KeyResource, newPageSchema, presentKey, presentToken, TokenResource } from '../resources.ts'
import { InvitedResource, PersonResource, presentPerson, readOfPeople } from './people-resources.ts'

const minutesMax = invitationMs / minuteMs
const minutesField = () =>
  Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: minutesMax,
      description: `How long the link can be used (default: ${minutesMax / 60} hours).`,
    }),
  )

export const listPeople = operation({
  ...forAdmins,
  method: 'GET',
  path: '/v1/people',
  summary: 'Lists the people who may sign in to the console, oldest first, including disabled people.',
  query: closed(pageQuery),
  answer: newPageSchema(PersonResource),
  errors: ['cursor_mismatch'],
  async run(context, { query }) {
    const { store } = context
    const ofPeople = await readOfPeople(store)
    const people = (await store.listPeople()).map((person) => presentPerson(person, ofPeople))
    return cutList(context, people, query, { list: 'people' })
  },
})

export const invitePerson = operation({
  ...forAdmins,
  method: 'POST',
  path: '/v1/people',
  summary: 'Lets a person sign in to the console with a link. Only this answer contains the link.',
  body: closed({
    name: Type.String({ minLength: 1, maxLength: 100, examples: ['Ada'] }),
    role: Type.Enum([...roles]),
    apps: Type.Optional(scopeField("The person's apps, by slug or id (default: the whole service).")),
    minutes: minutesField(),
  }),
  answer: InvitedResource,
  creates: true,
  outlives: always,
  errors: ['name_taken', 'not_found', 'no_console'],
  async run(context, { body: { name, role, apps, minutes = minutesMax } }) {
    const named = parseActorName(name)
    if (!named.ok) return invalid(named.issues)
    if (context.consoleUrl === null) return noConsole()
    const scope = await findScope(context, apps)
    if (!scope.ok) return scope
    const { store, access } = context
    const person = await store.createPerson({ name, role, apps: scope.value }, access.actor)
    if (person === 'name_taken')
      return fail(
        'name_taken',
        `There is already a person named "${name}": choose another name, or make a new link for that person.`,
      )
    return newLink(context, person, minutes)
  },
})

export const linkPerson = operation({
  ...forAdmins,
  method: 'POST',
  path: '/v1/people/{person}/link',
  summary: 'Creates another link that signs a person in once; earlier ones end.',
  body: closed({ minutes: minutesField() }),
  answer: InvitedResource,
  creates: true,
  outlives: always,
  errors: ['not_found', 'person_disabled', 'no_console', 'own_access'],
  async run(context, { params, body: { minutes = minutesMax } }) {
    const person = await context.store.findPerson(params.person)
    if (person === null) return personNotFound(params.person)
    if (person.id === context.access.actor.id)
      return fail('own_access', 'You cannot make a link for yourself: add a passkey to your account instead.')
    return newLink(context, person, minutes)
  },
})

export const endLink = operation({
  ...forAdmins,
  method: 'DELETE',
  path: '/v1/people/{person}/link',
  summary: "Ends a person's link before it is used.",
  answer: PersonResource,
  errors: ['not_found'],
  async run({ store, access }, { params }) {
    const person = await store.findPerson(params.person)
    if (person === null) return personNotFound(params.person)
    if (!(await store.endSignInCode(person.id, access.actor)))
      return fail('not_found', `${person.name} has no unused link: it was used or cancelled, or has expired.`)
    return done(presentPerson(person, await readOfPeople(store)))
  },
})

export const changePerson = operation({
  ...forAdmins,
  method: 'PATCH',
  path: '/v1/people/{person}',
  summary:
    'Changes what a person may do, or disables the person, which ends all their sessions and links. Takes effect for the next request.',
  body: closed({
    role: Type.Optional(Type.Enum([...roles])),
    apps: Type.Optional(orNull(scopeField("The person's apps, by slug or id; null for the whole service."))),
    disabled: Type.Optional(Type.Boolean()),
  }),
  answer: PersonResource,
  outlives: ({ body }) => body.disabled !== true || Object.keys(body).length > 1,
  errors: ['not_found', 'own_access'],
  async run(context, { params, body: { role, apps, disabled } }) {
    const { store, access } = context
    const person = await store.findPerson(params.person)
    if (person === null) return personNotFound(params.person)
    if (person.id === access.actor.id)
      return fail(
        'own_access',
        'You cannot change your own role, apps or status: another admin can, or the command line on the server.',
      )
    const scope = await findScope(context, apps)
    if (!scope.ok) return scope
    const change = {
      ...(role !== undefined && { role }),
      ...(apps !== undefined && { apps: scope.value }),
      ...(disabled !== undefined && { disabled }),
    }
    const changed = await store.updatePerson(person.id, change, access.actor)
    if (changed === null) return personNotFound(params.person)
    return done(presentPerson(changed, await readOfPeople(store)))
  },
})

export const removePasskey = operation({
  ...forAdmins,
  method: 'DELETE',
  path: '/v1/people/{person}/passkeys/{passkey}',
  summary: "Removes a person's passkey. Sessions started with it continue.",
  answer: PersonResource,
  errors: ['not_found'],
  async run({ store, access }, { params }) {
    const person = await store.findPerson(params.person)
    if (person === null) return personNotFound(params.person)
    if (!(await store.removePasskey(person.id, params.passkey, access.actor)))
      return fail('not_found', `${person.name} has no passkey "${params.passkey}".`)
    return done(presentPerson(person, await readOfPeople(store)))
  },
})

async function newLink({ store, access, consoleUrl }: Context, person: PersonRecord, minutes: number) {
  if (consoleUrl === null) return noConsole()
  if (person.oidc !== null)
    return fail(
      'person_disabled',
      `${person.name} signs in through ${new URL(person.oidc.issuer).host}, and only that provider decides what they may do.`,
    )
  const code = newSignInCode()
  const expiresAt = store.now() + minutes * minuteMs
  const link = { hash: hashSignInCode(code), person: person.id, expiresAt }
  if (!(await store.createSignInCode(link, access.actor)))
    return fail('person_disabled', `${person.name} is disabled: enable the person first.`)
  return done(
    {
      ...presentPerson(person, await readOfPeople(store)),
      // In the fragment, which browsers send to no server, so that no proxy logs it.
      link: `${consoleUrl}/sign-in#${code}`,
      linkExpiresAt: iso(expiresAt),
    },
    { created: true },
  )
}

const noConsole = (): Result<never> =>
  fail('no_console', 'There is no console to sign in to: POSTERN_CONSOLE_LISTEN is off.')

const personNotFound = (name: string) =>
  fail('not_found', `There is no person "${name}"; give the name or id (pe_…) of a person.`)

export const showMade = operation({
  ...forAdmins,
  method: 'GET',
  path: '/v1/people/{person}/made',
  summary:
    'Shows the management tokens and delivery keys that a person created and that still work. They keep working when the person is disabled.',
  answer: closed({ tokens: Type.Array(TokenResource), keys: Type.Array(KeyResource) }),
  errors: ['not_found'],
  async run({ store }, { params }) {
    const person = await store.findPerson(params.person)
    if (person === null) return personNotFound(params.person)
    const now = store.now()
    const tokens = (await store.listTokens()).filter(
      (token) => token.createdBy === person.name && !hasEnded(token, now),
    )
    const keys = await store.listKeysMadeBy(person.name)
    return done({ tokens: tokens.map(presentToken), keys: keys.map(presentKey) })
  },
})
