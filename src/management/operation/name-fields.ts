/** The name, the expiry and the scope of a key, a token or a person. */
import { Type } from 'typebox'
import { parseNetwork } from '../../domain/app/key-networks.ts'
import { keyNetworksMax } from '../../domain/bounds.ts'
import { hasControls } from '../../domain/controls.ts'
import { dayMs } from '../../domain/duration.ts'
import type { AppId } from '../../domain/id.ts'
import { isReservedName } from '../../domain/operator/audit.ts'
import { issuesOf, type Parsed, parsed, refused, valuesOf } from '../../domain/parsed.ts'
import { parseTimestamp } from '../../domain/request/timestamp.ts'
import type { Store } from '../../store/store.ts'
import { findTarget } from './find-target.ts'
import type { Context } from './operation.ts'
import { done, type Result } from './result.ts'
import { orNull } from './schema.ts'

export const nameField = () => Type.String({ minLength: 1, maxLength: 100, examples: ['production', 'staging'] })

export const daySeconds = dayMs / 1000
/** How long the secret before goes on working. */
export const graceField = (daysMax: number) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: daysMax * daySeconds, description: 'Default: a day.' }))

export const expiryField = () => orNull(Type.String({ format: 'date-time', examples: ['2099-01-31T00:00:00Z'] }))

/** A name that people see in lists: not blank, without control characters. */
export function parseName(name: string): Parsed<string> {
  if (name.trim() === name && !hasControls(name)) return parsed(name)
  const message = '1 to 100 characters, without control characters or leading or trailing spaces.'
  return refused({ field: 'name', code: 'malformed_text', message })
}

export const networksField = () =>
  orNull(
    Type.Array(Type.String({ examples: ['192.0.2.0/24', '2001:db8::/32'] }), {
      minItems: 1,
      maxItems: keyNetworksMax,
    }),
  )

/** Each network once, in the order given. */
export function parseNetworks(texts: readonly string[]): Parsed<readonly string[]> {
  const networks = texts.map(parseNetwork)
  const issues = issuesOf(networks)
  return issues.length > 0 ? refused(...issues) : parsed([...new Set(valuesOf(networks))])
}

/** Milliseconds since 1970, in the future. */
export function parseExpiry(text: string, { now }: Pick<Store, 'now'>): Parsed<number> {
  const at = parseTimestamp(text, 'expiresAt')
  if (!at.ok || at.value > now()) return at
  return refused({
    field: 'expiresAt',
    code: 'in_the_past',
    message: 'This time has passed; give a later one.',
  })
}

/** The name of a token or a person. */
export function parseActorName(name: string): Parsed<string> {
  if (!isReservedName(name)) return parseName(name)
  const message = 'A name must not begin with "cli:" or "pe_".'
  return refused({ field: 'name', code: 'reserved', message })
}

const appsMax = 50

export const scopeField = (description: string) =>
  Type.Array(Type.String(), { minItems: 1, maxItems: appsMax, description, examples: [['acme']] })

/** The ids of the apps, by slug or id; null, the whole service, if none are given. */
export async function findScope(
  context: Context,
  names: readonly string[] | null | undefined,
): Promise<Result<AppId[] | null>> {
  if (names == null) return done(null)
  const ids = new Set<AppId>()
  for (const app of names) {
    const found = await findTarget('app', context, { app })
    if (!found.ok) return found
    ids.add(found.value.id)
  }
  return done([...ids])
}
