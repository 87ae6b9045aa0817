/** Changes some settings of an app, or its status. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { appChangeTriesMax } from '../../domain/bounds.ts'
import { isAtLeast } from '../../domain/operator/management-token.ts'
import { checkSchema } from '../operation/check-schema.ts'
import { operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppResource, presentApp } from '../resources.ts'
import {
  AppBody,
  AppPatch,
  adminFields,
  mergePatch,
  parseSettings,
  serviceField,
} from '../settings-schema.ts'

export const dryRunQuery = {
  dryRun: Type.Optional(
    Type.Boolean({ description: 'Checks everything, returns the app as it would be, and changes nothing.' }),
  ),
}

export const changeApp = operation({
  method: 'PATCH',
  path: '/v1/apps/{app}',
  role: 'operator',
  target: 'app',
  summary: `Changes some settings of an app, or its status (RFC 7396). These need an admin: ${adminFields.map((name) => `\`${name}\``).join(', ')}. \`${serviceField}\` needs an admin of the whole service.`,
  query: closed(dryRunQuery),
  body: AppPatch,
  answer: AppResource,
  versioned: true,
  errors: ['version_mismatch', 'app_changing', 'changed_too_often'],
  async run(context, { query, body, ifVersion }, found) {
    const { store, access } = context
    // When another change comes between reading and writing, this one is applied to the new settings.
    let app: App | null = found
    for (let tries = 0; tries < appChangeTriesMax && app !== null; tries++) {
      if (ifVersion !== undefined && ifVersion !== app.version) return staleVersion(app)
      const { settings: before, status: statusBefore } = app
      const merged = checkSchema(AppBody, mergePatch({ ...before, status: statusBefore }, body))
      if (!merged.ok) return invalid(merged.issues)
      const settings = parseSettings(merged.value, context)
      if (!settings.ok) return invalid(settings.issues)
      const isChanged = (name: keyof AppSettings) =>
        JSON.stringify(before[name]) !== JSON.stringify(settings.value[name])
      const isAdmin = isAtLeast(access.role, 'admin')
      if (!isAdmin && adminFields.some(isChanged))
        return fail('not_permitted', `Only the role admin may change ${adminFields.join(', ')}.`)
      if (!(isAdmin && access.apps === null) && isChanged(serviceField))
        return fail('not_permitted', `Only an admin of the whole service may change ${serviceField}.`)
      const { status = 'active' } = merged.value
      if (query.dryRun === true) return done(presentApp({ ...app, settings: settings.value, status }))
      const change = { settings: settings.value, status, ifVersion: app.version }
      const changed = await store.updateApp(app.id, change, access.actor)
      if (changed === 'too_often') return changedTooOften(app)
      if (changed !== null && changed !== 'stale') return done(presentApp(changed))
      app = await store.findApp(found.id)
    }
    return fail('app_changing', 'Others are changing or deleting the app; check it and try again.')
  },
})

export const changedTooOften = ({ slug }: App) =>
  fail(
    'changed_too_often',
    `Changes to the settings of ${slug} have filled the audit, which keeps each one for a long time: this one was not made. Try again 24 hours after the first one; keys and the status can still be changed.`,
  )

/** @param app the app as it is now; null if there is none */
export const staleVersion = (app: App | null) =>
  fail(
    'version_mismatch',
    app === null
      ? 'There is no app with this slug, so it has no version. Leave If-Match out to create it.'
      : `The app has been changed: its version is ${app.version}. Read it again before you change it.`,
  )
