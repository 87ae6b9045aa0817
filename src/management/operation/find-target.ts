/** Finds the target of an operation. A target outside the scope is answered like one that does not exist. */

import { keepDays } from '../../domain/bounds.ts'
import type { AppId, EmailId, KeyId, SuppressionId } from '../../domain/id.ts'
import { recordEveryMs } from '../../domain/operator/activity.ts'
import { refusalsMax } from '../../domain/request/refused-request.ts'
import { isInScope } from './access.ts'
import type { Context, TargetKind, Targets } from './operation.ts'
import { done, fail, type Result } from './result.ts'

export const appNotFound = (name: string) => fail('not_found', `There is no app "${name}".`)
export const keyNotFound = (id: string) => fail('not_found', `There is no key "${id}"; give the id of a key (key_…).`)
const emailNotFound = (id: string) =>
  fail(
    'not_found',
    id.startsWith('req_')
      ? `"${id}" is a request, not an email: if it was refused, its refusal says why; if it was accepted, the line with this id in the service's log names its email.`
      : `There is no email "${id}"; records are kept for ${keepDays} days.`,
  )

const refusalNotFound = (id: string) =>
  fail(
    'not_found',
    `There is no refusal "${id}". The newest ${refusalsMax} of each app are kept, plus ${refusalsMax} that were over a limit; new ones appear within ${recordEveryMs / 1000} seconds; those for an unknown key, and 500 errors, are only in the service's log.`,
  )

export const suppressionNotFound = (id: string) =>
  fail('not_found', `There is no suppression "${id}"; give the id of a suppression (sp_…).`)

type Params = Readonly<Record<string, string>>
type Find = (context: Context, params: Params) => Promise<Result<Targets[TargetKind]>>

const finders: Readonly<Record<TargetKind, Find>> = {
  none: async () => done(null),
  app: async (context, { app: name = '' }) => {
    const app = await context.store.findApp(name)
    return app !== null && isInScope(context.access, app.id) ? done(app) : appNotFound(name)
  },
  key: async (context, { key: id = '' }) => {
    const key = await context.store.findKey(id as KeyId)
    return key !== null && isInScope(context.access, key.app) ? done(key) : keyNotFound(id)
  },
  email: async (context, { email: id = '' }) => {
    const email = await context.store.findEmail(id as EmailId)
    return email !== null && isInScope(context.access, email.app) ? done(email) : emailNotFound(id)
  },
  refusal: async (context, { request: id = '' }) => {
    const refusal = await context.store.findRefusal(id)
    return refusal !== null && isInScope(context.access, refusal.app) ? done(refusal) : refusalNotFound(id)
  },
  suppression: async ({ access, store }, { suppression: id = '' }) => {
    const found = await store.findSuppression(id as SuppressionId)
    // Those of all apps belong to the whole service.
    const isSeen = found !== null && (found.app === null ? access.apps === null : isInScope(access, found.app))
    return isSeen ? done(found) : suppressionNotFound(id)
  },
}

export const findTarget = <Kind extends TargetKind>(
  kind: Kind,
  context: Context,
  params: Params,
): Promise<Result<Targets[Kind]>> => finders[kind](context, params) as Promise<Result<Targets[Kind]>>

/** The apps that are asked for: one by its name, or all of the access. Null: the whole service. */
export async function chooseApps(context: Context, app: string | undefined): Promise<Result<readonly AppId[] | null>> {
  const { apps } = context.access
  if (app === undefined) return done(apps && [...apps])
  const found = await findTarget('app', context, { app })
  return found.ok ? done([found.value.id]) : found
}
