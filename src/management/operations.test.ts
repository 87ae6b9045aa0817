import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TSchema } from 'typebox'
import { authHookNames } from '../domain/auth-hooks/auth-hooks.ts'
import { never } from './operation/operation.ts'
import { findOperation, type OperationName, operationNames } from './operations.ts'

type Schema = TSchema & {
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
}
type Property = { readonly name: string; readonly schema: Schema }

/** The properties of a schema, at every depth. */
function listProperties({ anyOf = [], items, patternProperties = {}, properties = {} }: Schema): Property[] {
  const inner = [...anyOf, ...Object.values(patternProperties), ...(items === undefined ? [] : [items])]
  const own = Object.entries(properties).map(([name, schema]) => ({ name, schema }))
  return [...own, ...[...own.map(({ schema }) => schema), ...inner].flatMap(listProperties)]
}

const namesOf = (schema: Schema): string[] => [...new Set(listProperties(schema).map(({ name }) => name))]

const changing = operationNames.filter((name) => findOperation(name).audited)
const saysFresh = (name: OperationName): boolean => findOperation(name).outlives !== never

/** Properties that name where people, mail or data go, or that give somebody access. */
const gaining = [
  ...['from', 'address', 'senderDomains', 'envelopeFrom', 'replyTo', 'supportContact', 'domain', 'to'],
  ...[
    'allowedUrls',
    'appSchemes',
    'allowLocalhost',
    'linkDestinations',
    'linkDomain',
    'useLinkDomain',
    'webhookUrl',
    'fallbackUrl',
    'newEmailUrl',
    'logoUrl',
    'transport',
    'relays',
  ],
  ...['magic_link', 'email_verification', 'password_reset', 'organisation_invite'], // of `linkDestinations`
  ...['authHooks', ...authHookNames, 'verifyUrl', 'pages', 'rules', 'url'],
  ...['role', 'apps', 'disabled', 'status', 'expiresAt', 'networks', 'minutes', 'graceSeconds', 'secret'],
  ...['algorithm', 'unchecked'], // of keys that sign mail
]

/** Properties that name what there is already, or how it looks, how much and for how long. */
const harmless = [
  'ignoredHosts',
  ...['name', 'slug', 'id', 'version', 'createdAt', 'updatedAt', 'app', 'key', 'recipient', 'destination', 'test'],
  ...[
    'list',
    'filters',
    'localTimes',
    'reply',
    'until',
    'type',
    'state',
    'reason',
    'since',
    'cursor',
    'after',
    'limit',
    'days',
    'dryRun',
    'report',
    'payload',
    'settings',
    'suppressions',
  ],
  ...['allowCodes', 'supersede', 'hostedLinks', 'lifeSeconds', 'organisationName', 'branding', 'accentColour'],
  ...['words', 'subject', 'text', 'signOff'],
  ...['addressLine', 'locale', 'formOfAddress', 'code', 'limits', 'keyPerMinute', 'recipientPerHour', 'daily'],
]

/** Changes that have such a property, and gain nothing by it. */
const gainless: Partial<Record<OperationName, readonly string[]>> = {
  'email.find': ['to'], // whose emails are looked for
  'suppression.find': ['to'],
  'recipient.forget': ['to'], // whose records are deleted
  'suppression.add': ['to'], // who gets no mail
  'suppression.clear': ['from', 'to'], // times
  'app.test_email': ['to'], // a sample, within the limits of the app
}

test('every property of a body is known to name a destination or access, or to be harmless', () => {
  const all = new Set(operationNames.flatMap((name) => namesOf(findOperation(name).body as Schema)))
  assert.deepEqual([...gaining, ...harmless].sort(), [...all].sort())
})

test('an operation that takes a destination or gives access asks for a fresh sign-in', () => {
  for (const name of changing) {
    const taken = namesOf(findOperation(name).body as Schema).filter((property) => gaining.includes(property))
    const unsaid = saysFresh(name) ? [] : taken
    assert.deepEqual(unsaid, gainless[name] ?? [], name)
  }
})

/** Strings of an answer that may be a secret, by name. */
const secretNames = /secret|token|key|link|password|code/i
const isText = ({ anyOf = [], type }: Schema): boolean => type === 'string' || anyOf.some(isText)

/** Strings that only look so: codes of errors and replies, times, modes and destinations that are set. */
const notSecret = [
  ...['code', 'oldSecretUntil', 'linkExpiresAt', 'hostedLinks', 'linkDomain', 'magic_link', 'password_reset'],
]

/** The key of an email, which may be none, and that of a refusal are ids. */
const isIdOfKey = (operation: OperationName, { name, schema }: Property): boolean =>
  name === 'key' && (schema.anyOf !== undefined || operation.startsWith('refusal.'))

const answersSecret = (operation: OperationName): boolean => {
  const { answer, summary } = findOperation(operation)
  const isSaid = (text = '') => /only this answer/i.test(text)
  return (
    isSaid(summary) ||
    listProperties(answer as Schema).some(
      (property) =>
        isSaid(property.schema.description) ||
        (secretNames.test(property.name) &&
          isText(property.schema) &&
          !notSecret.includes(property.name) &&
          !isIdOfKey(operation, property)),
    )
  )
}

test('an operation that answers a secret asks for a fresh sign-in', () => {
  const found = operationNames.filter(answersSecret)
  assert.deepEqual(
    found.filter((name) => !saysFresh(name)),
    [],
  )
  assert.deepEqual(found.sort(), [
    ...(['auth_hook.connect', 'key.create', 'key.replace'] as const),
    ...(['person.invite', 'person.link', 'token.create', 'webhook.secret'] as const),
  ])
})
