/** Creates, changes and deletes apps. */
import { type TObject, Type } from 'typebox'
import { type App, type AppStatus, parseSlug } from '../../domain/app/app.ts'
import { type AppSettings, defaultSettings, settingsFor } from '../../domain/app/settings.ts'
import { appChangeTriesMax } from '../../domain/bounds.ts'
import { nameAll } from '../../domain/counts.ts'
import type { AppId } from '../../domain/id.ts'
import { type Issue, parsed } from '../../domain/parsed.ts'
import type { AppChange } from '../../store/operator-store.ts'
import { type Access, isServiceAdmin } from '../operation/access.ts'
import { checkSchema } from '../operation/check-schema.ts'
import { appNotFound } from '../operation/find-target.ts'
import { always, type Context, forAdmins, type Input, operation } from '../operation/operation.ts'
import { done, fail, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppResource, presentApp } from '../resources.ts'
import { AppBody, AppPatch, mergePatch, parseSettings } from '../settings-schema.ts'
import { sendsElsewhere } from './destinations.ts'
import { refuseAdminFields, refuseReserved } from './reserved-settings.ts'

const dryRunQuery = {
  dryRun: Type.Optional(
    Type.Boolean({ description: 'Checks everything, returns the app as it would be, and changes nothing.' }),
  ),
}

export const putApp = operation({
  ...forAdmins,
  method: 'PUT',
  path: '/v1/apps/{app}',
  target: 'none',
  summary: 'Creates an app, or replaces all its settings. Repeating it changes nothing.',
  query: closed(dryRunQuery),
  body: AppBody,
  answer: AppResource,
  outlives: always,
  creates: true,
  versioned: true,
  errors: ['slug_taken', 'version_mismatch', 'app_changing'],
  async run(context, input) {
    for (let tries = 0; tries < appChangeTriesMax; tries++) {
      const result = await put(context, input)
      if (result !== 'stale') return result
    }
    return appChanging()
  },
})

type PutInput = Input<'/v1/apps/{app}', TObject<typeof dryRunQuery>, typeof AppBody>

/** `stale`: another change came between reading and writing, of which the request does not know. */
async function put(
  context: Context,
  { params: { app: slug }, query, body, ifVersion, ifAbsent = false }: PutInput,
): Promise<Result<AppResource> | 'stale'> {
  const found = await context.store.findApp(slug)
  const refused = await refuseTransport(context, body, found)
  if (refused !== null) return refused
  const settings = parseSettings(keepDomains(body, found), { ...context, givesDomains: true })
  const issues = [...checkSlug(slug, body.slug), ...(settings.ok ? [] : settings.issues)]
  if (!settings.ok || issues.length > 0) return invalid(issues)
  const status = body.status ?? found?.status ?? 'active'
  const wanted = { slug, settings: settings.value, status } as const
  if (found !== null && ifAbsent) return slugTaken(slug)
  if (ifVersion !== undefined && ifVersion !== found?.version) return staleVersion(found)
  if (query.dryRun === true) return dryRun(context, found, wanted)
  if (found === null) return create(context, wanted, ifAbsent)
  const change = { settings: settings.value, status, ifVersion: found.version }
  const replaced = await context.store.updateApp(found.id, change, context.access.actor)
  if (replaced === 'stale') return 'stale'
  return replaced === null ? appChanging() : done(presentApp(replaced))
}

/** Mail of an app whose transport is not there would wait. */
async function refuseTransport({ access, store }: Context, body: unknown, app: App | null) {
  const { transport } = body as { readonly transport?: unknown }
  if (typeof transport !== 'string' || transport === app?.settings.transport || !isServiceAdmin(access)) return null
  const known = (await store.listTransports()).map(({ name }) => name)
  if (known.includes(transport)) return null
  const message = `There is no transport "${transport}"${known.length === 0 ? '' : `. There are: ${nameAll(known)}`}.`
  return invalid([{ field: 'transport', code: 'unknown_transport', message }])
}

/** Domains that the body leaves out stay: they may have been proved in DNS since the body was written. */
const keepDomains = (body: AppBody, found: App | null): AppBody => ({
  ...body,
  senderDomains: body.senderDomains ?? [...(found?.settings.senderDomains ?? [])],
})

function checkSlug(slug: string, inBody: string | undefined): readonly Issue[] {
  const valid = parseSlug(slug)
  if (!valid.ok) return valid.issues
  if (inBody === undefined || inBody === slug) return []
  const message = `It must be "${slug}", as in the address, or left out. An app's slug never changes.`
  return [{ field: 'slug', code: 'slug_differs', message }]
}

type WantedApp = Pick<App, 'slug' | 'settings' | 'status'>

const slugTaken = (slug: string) =>
  fail('slug_taken', `The slug "${slug}" is taken by another app; choose another one.`)

async function create(
  { store, access }: Context,
  { slug, settings, status }: WantedApp,
  ifAbsent: boolean,
): Promise<Result<AppResource>> {
  const app = await store.createApp(slug, settings, access.actor, status)
  if (app !== null) return done(presentApp(app), { created: true })
  return ifAbsent ? slugTaken(slug) : appChanging()
}

const appChanging = () => fail('app_changing', 'Another request just created or deleted the app; repeat this one.')

const noId = `app_${'0'.repeat(26)}` as AppId

/** The app as it would be. The id of a new app is all zeros. */
function dryRun({ store }: Context, found: App | null, { slug, settings, status }: WantedApp) {
  const now = store.now()
  const base = found ?? { id: noId, slug, version: 1, createdAt: now, updatedAt: now }
  return done(presentApp({ ...base, settings: settings as AppSettings, status }))
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
  async run(context, { query, body, ifVersion }, found) {
    const refused = await refuseTransport(context, body, found)
    if (refused !== null) return refused
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
const staleVersion = (app: App | null) =>
  fail(
    'version_mismatch',
    app === null
      ? 'There is no app with this slug, so it has no version. Leave If-Match out to create it.'
      : `The app has been changed: its version is ${app.version}. Read it again before you change it.`,
  )

/** If another change is written between reading and writing, `toChange` is asked again with the new app. */
export async function changeLatest(
  { access, store }: Context,
  found: App,
  toChange: (app: App) => Result<Omit<AppChange, 'ifVersion'>>,
): Promise<Result<AppResource>> {
  let app: App | null = found
  for (let tries = 0; tries < appChangeTriesMax && app !== null; tries++) {
    const change = toChange(app)
    if (!change.ok) return change
    const changed = await store.updateApp(app.id, { ...change.value, ifVersion: app.version }, access.actor)
    if (changed !== null && changed !== 'stale') return done(presentApp(changed))
    app = await store.findApp(found.id)
  }
  return fail('app_changing', 'Others are changing or deleting the app; check it and try again.')
}

/**
 * How long the answer waits for mail to be cancelled. Mail that is left then is cancelled by the service's
 * maintenance.
 */
const cancelMs = 5000

export const deleteApp = operation({
  ...forAdmins,
  method: 'DELETE',
  path: '/v1/apps/{app}',
  summary: 'Deletes a disabled or suspended app and its keys, and cancels its queued mail. This cannot be undone.',
  answer: closed({
    id: Type.String(),
    slug: Type.String(),
    cancelled: Type.Integer({ description: 'The number of cancelled emails.' }),
    complete: Type.Boolean({
      description: 'False if more mail is still to be cancelled; the service continues with it.',
    }),
  }),
  outlives: always,
  errors: ['app_active'],
  async run(context, { params }, { id, slug }) {
    const { store, access } = context
    const result = await store.deleteApp(id, access.actor)
    if (result === null) return appNotFound(params.app)
    if (result === 'active')
      return fail('app_active', `The app "${slug}" is active: disable it first, so that its keys stop working.`)
    return done({ id, slug, ...(await cancelMail(context, id)) })
  },
})

async function cancelMail({ store, emit }: Context, id: AppId): Promise<{ cancelled: number; complete: boolean }> {
  const endMs = performance.now() + cancelMs
  let cancelled = 0
  do {
    const ended = await store.cancelDeletedAppMail(id)
    if (ended.length === 0) return { cancelled, complete: true }
    emit({ kind: 'emails_ended', ended })
    cancelled += ended.length
  } while (performance.now() < endMs)
  return { cancelled, complete: false }
}
