/** Ids as people type them: shortened, as pages and tables show them. */
import { isIdStart } from '../../domain/id.ts'
import { isServiceAdmin } from './access.ts'
import { findTarget } from './find-target.ts'
import type { Context, TargetKind } from './operation.ts'

/** The parameters that take a shortened id, with the kind of their ids, and how to find what it names. */
const shortened: Readonly<Record<string, readonly [kind: string, target: TargetKind | 'admins']>> = {
  email: ['em_', 'email'],
  key: ['key_', 'key'],
  request: ['req_', 'refusal'],
  suppression: ['sp_', 'suppression'],
  // Found within its app.
  message: ['wh_', 'none'],
  token: ['tok_', 'admins'],
  person: ['pe_', 'admins'],
  session: ['ses_', 'admins'],
}

/**
 * Shortened ids, as pages and tables show them, in full. One that two ids begin with stays as it is, and so
 * does one that this access does not see: an error would name it.
 */
export async function completeIds<Values extends Readonly<Record<string, unknown>>>(
  context: Context,
  values: Values,
): Promise<Values> {
  const complete = async (name: string, start: string): Promise<string> => {
    const [kind, target] = shortened[name] ?? ['', 'none']
    if (kind === '' || !start.startsWith(kind) || !isIdStart(start)) return start
    if (target === 'admins' && !isServiceAdmin(context.access)) return start
    const [id, other] = await context.store.findIdsFrom(start)
    if (id === undefined || other !== undefined) return start
    const isSeen = target === 'admins' || (await findTarget(target, context, { [name]: id })).ok
    return isSeen ? id : start
  }
  const completed = await Promise.all(
    Object.entries(values).map(async ([name, value]) =>
      typeof value === 'string' && Object.hasOwn(shortened, name) ? [name, await complete(name, value)] : [name, value],
    ),
  )
  return Object.fromEntries(completed) as Values
}
