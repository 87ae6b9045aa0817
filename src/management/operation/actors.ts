/** Names and scopes of the actors that operators make: tokens and people. */

import { Type } from 'typebox'
import type { AppId } from '../../domain/id.ts'
import { isReservedName } from '../../domain/operator/audit.ts'
import { type Parsed, refused } from '../../domain/parsed.ts'
import { findTarget } from './find-target.ts'
import { parseName } from './name-fields.ts'
import type { Context } from './operation.ts'
import { done, type Result } from './result.ts'

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
