/** Changes some settings of an app, or its status. */
import { Type } from 'typebox'
import type { App, AppStatus } from '../../domain/app/app.ts'
import { type AppSettings, defaultSettings, settingsFor } from '../../domain/app/settings.ts'
import { parsed } from '../../domain/parsed.ts'
import type { AppChange } from '../../store/operator-store.ts'
import { type Access, isServiceAdmin } from '../operation/access.ts'
import { checkSchema } from '../operation/check-schema.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done, fail, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppResource, presentApp } from '../resources.ts'
import { AppBody, AppPatch, mergePatch, parseSettings } from '../settings-schema.ts'
import { changeLatest } from './change-latest.ts'
import { sendsElsewhere } from './destinations.ts'
import { refuseAdminFields, refuseReserved } from './reserved-settings.ts'

export const dryRunQuery = {
  dryRun: Type.Optional(
    Type.Boolean({ description: 'Checks everything, returns the app as it would be, and changes nothing.' }),
  ),
}

const listFields = (fields: readonly string[]): string => fields.map((name) => `\`${name}\``).join(', ')

export const changeApp = operation({
  method: 'PATCH',
  path: '/v1/apps/{app}',
  role: 'operator',
  summary: `Changes some settings of an app, or its status (RFC 7396). These need an admin: ${listFields(settingsFor('admin'))}. These need an admin of the whole service: ${listFields(settingsFor('service'))}, an app scheme without a dot, and links into a private network or to Postern.`,
  query: closed(dryRunQuery),
  body: AppPatch,
  answer: AppResource,
  versioned: true,
  outlives: ({ body }, app) => sendsElsewhere(app, body),
  takesAway: ({ body }) => onlyStops(body),
  errors: ['version_mismatch', 'app_changing'],
  run(context, { query, body, ifVersion }, found) {
    const judge = (app: App) =>
      ifVersion === undefined || ifVersion === app.version ? judgeChange(context, app, body) : staleVersion(app)
    if (query.dryRun !== true) return changeLatest(context, found, judge)
    const judged = judge(found)
    return judged.ok ? done(presentApp({ ...found, ...judged.value })) : judged
  },
})

/** The app as a patch makes it, if the access may. */
function judgeChange(context: Context, { settings: before, status: statusBefore }: App, patch: unknown) {
  const { access } = context
  const merged = checkSchema(AppBody, mergePatch({ ...before, status: statusBefore }, patch))
  if (!merged.ok) return invalid(merged.issues)
  const wanted = { ...defaultSettings, ...merged.value } as AppSettings
  const { status = 'active' } = merged.value
  const early = refuseAdminFields(access, before, wanted) ?? refuseLifting(access, statusBefore, status)
  if (early !== null) return early
  const givesDomains = isServiceAdmin(access) && (names(patch, 'from') || names(patch, 'envelopeFrom'))
  const settings = isStatusOnly(patch) ? parsed(before) : parseSettings(merged.value, { ...context, givesDomains })
  if (!settings.ok) return invalid(settings.issues)
  return (
    refuseReserved(context, before, settings.value) ??
    done<Omit<AppChange, 'ifVersion'>>({ settings: settings.value, status })
  )
}

const names = (patch: unknown, field: string): boolean => typeof patch === 'object' && patch !== null && field in patch

/** An app that an admin of the whole service suspended stays so until such an admin lifts it. */
const refuseLifting = (access: Access, before: AppStatus, after: AppStatus): Result<never> | null =>
  before === after || isServiceAdmin(access) || (before !== 'suspended' && after !== 'suspended')
    ? null
    : fail('not_permitted', 'Only an admin of the whole service may suspend an app, or lift its suspension.')

/** Such a change is made whatever the settings are, which may break a rule that is newer than they are. */
const isStatusOnly = (patch: unknown): patch is { readonly status: unknown } =>
  Object.keys(patch ?? {}).join() === 'status'

/** Whether a patch disables or suspends the app, and does nothing else. */
const onlyStops = (patch: unknown): boolean =>
  isStatusOnly(patch) && (patch.status === 'disabled' || patch.status === 'suspended')

/** @param app the app as it is now; null if there is none */
export const staleVersion = (app: App | null) =>
  fail(
    'version_mismatch',
    app === null
      ? 'There is no app with this slug, so it has no version. Leave If-Match out to create it.'
      : `The app has been changed: its version is ${app.version}. Read it again before you change it.`,
  )
