/** The settings of an app besides links and look: its name, sender and limits; disabling and deleting it. */
import { appStatuses } from '../../../../domain/app/app.ts'
import { heldDays } from '../../../../domain/bounds.ts'
import { formatCount } from '../../../../domain/counts.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource, UsageResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailInput, type Fields, newForm, problem, readTexts } from '../form.ts'
import { button, confirmation, copied, facts, hiddenFields, linkButton, section, time } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { readSettings, readWhole, saveApp, settingFields, showAgain, toSettingsPatch, versionField } from './change.ts'
import { readLastChanges } from './last-changes.ts'

const paths = {
  name: 'name',
  senderName: 'from.name',
  senderAddress: 'from.address',
  replyTo: 'replyTo',
  envelopeFrom: 'envelopeFrom',
  daily: 'limits.daily',
  recipientPerHour: 'limits.recipientPerHour',
  keyPerMinute: 'limits.keyPerMinute',
  transport: 'transport',
} as const

const address = { attributes: html`${emailInput} autocomplete="off"` }
const fields = settingFields(paths)
const settingsForm = newForm('settings', {
  ...fields,
  senderAddress: { ...fields.senderAddress, ...address, faults: ['from', paths.senderAddress] },
  replyTo: { ...fields.replyTo, ...address },
  envelopeFrom: { ...fields.envelopeFrom, ...address },
})

const deleteForm = newForm('delete', {
  slug: {
    label: 'Type the slug to confirm',
    attributes: html`required autocomplete="off" autocapitalize="none"`,
  },
})

type SettingsPageState = {
  readonly error?: OperationError
  /** An error of the form that deletes the app. */
  readonly notDeleted?: OperationError
}

export const showSettings = async (visit: Visit): Promise<PageAnswer> => settingsPage(visit, await findApp(visit), {})

async function settingsPage(
  visit: Visit,
  app: AppResource,
  { error: refused, notDeleted }: SettingsPageState,
): Promise<PageAnswer> {
  const { fields, error } = showAgain(readSettings(app, paths), visit.form, refused ?? null)
  const [transports, { items: days }, notes] = await Promise.all([
    listTransports(visit),
    visit.get('app.usage', { params: { app: app.slug } }),
    readLastChanges(visit, app, paths),
  ])
  const body = html`${appHead(app, 'Settings', visit)}
${renderForm(app, visit, { fields, error, days, notes, transports })}
${section(
  'About this app',
  facts([
    ['Slug', copied(app.slug)],
    ['Id', copied(app.id)],
    ['Created', time(app.createdAt)],
    ['Changed', html`${time(app.updatedAt)}`],
    ['Version', formatCount(app.version)],
  ]),
)}
${visit.may('operator') ? renderEnd(app, visit, notDeleted ?? null) : none}`
  const shownError = error ?? notDeleted
  return {
    title: `Settings of ${app.name}`,
    body,
    nav: 'apps',
    ...(shownError && { status: toHttpStatus(shownError) }),
  }
}

/** For the menu; empty for people who may not choose one. */
const listTransports = async (visit: Visit): Promise<readonly string[]> =>
  visit.may('admin') && visit.seesAll ? (await visit.get('transport.list', {})).items.map(({ name }) => name) : []

type FormParts = {
  readonly transports: readonly string[]
  readonly fields: Fields
  readonly error: OperationError | null
  readonly days: readonly UsageResource[]
  readonly notes: Partial<Record<keyof typeof paths, Html>>
}

const countToday = (days: readonly UsageResource[], now: number): number =>
  days.find(({ day }) => day === new Date(now).toISOString().slice(0, 10))?.accepted ?? 0

/** Half as much again, to two digits. */
function suggestLimit(demand: number): number {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(demand * 1.5)) - 1)
  return Math.ceil((demand * 1.5) / power) * power
}

/** How many emails were accepted, and how many more this limit refused. */
function describeDemand(days: readonly UsageResource[], now: number): string {
  const wanted = days.map(({ accepted, refused }) => ({ accepted, over: refused.daily_limit_reached ?? 0 }))
  const [busiest] = wanted.toSorted((a, b) => b.accepted + b.over - a.accepted - a.over)
  const { accepted = 0, over = 0 } = busiest ?? {}
  const refused = over === 0 ? '' : `, and ${formatCount(over)} refused by this limit`
  return `Today so far: ${formatCount(countToday(days, now))}. Busiest of the last 30 days: ${formatCount(accepted)} accepted${refused}.${over === 0 ? '' : ` To accept all of them with room to spare: ${formatCount(suggestLimit(accepted + over))}.`}`
}

/** A limit below what was accepted today refuses everything until midnight, so it is asked for twice. */
async function checkDaily(visit: Visit, app: AppResource, daily: number): Promise<OperationError | null> {
  if (daily < 1 || daily >= app.limits.daily || readWhole(visit.form.get('confirmed') ?? '') === daily) return null
  const { items } = await visit.get('app.usage', { params: { app: app.slug } })
  const today = countToday(items, visit.now)
  if (daily > today) return null
  const message = `${formatCount(today)} emails were accepted today, so with this limit every request is refused until midnight (UTC). Save again if you mean it.`
  return {
    code: 'invalid_request',
    message: 'Nothing was saved yet.',
    issues: [{ field: 'daily', code: 'used_up', message }],
  }
}

function renderForm(app: AppResource, visit: Visit, { fields, error, days, notes, transports }: FormParts): Html {
  const { may } = visit
  const isUsedUp = error?.issues?.some(({ code }) => code === 'used_up') ?? false
  const confirmed = isUsedUp ? (fields.daily ?? '') : null
  const forAdmins = { disabled: !may('admin') }
  const { field, problem: faults } = settingsForm.show(fields, error, notes)
  const note = may('admin')
    ? none
    : html`<p class="soft">Only admins can change the sender and the limits: they protect the other apps that use the same relay.</p>`
  return html`${faults}<form method="post" action="/apps/${app.slug}/settings">${versionField(app, visit.form, error)}
${section(
  'Name and sender',
  html`${note}<div class="columns">${field('name', forAdmins)}${field('senderName', forAdmins)}
${field('senderAddress', forAdmins)}</div>`,
)}
${section(
  'Replies and bounces',
  html`<div class="columns">${field('replyTo', { disabled: !may('operator') })}${field('envelopeFrom', forAdmins)}</div>`,
)}
${transports.length === 0 && (fields.transport ?? '') === '' ? none : section('Relays', html`<div class="columns">${field('transport', { disabled: !may('admin') || !visit.seesAll, choices: toChoices(transports, fields.transport ?? '') })}</div>`)}
${section(
  'Limits',
  html`<p class="soft">Requests over a limit are refused with 429.</p><div class="columns">
${field('daily', { ...forAdmins, hint: describeDemand(days, visit.now) })}${confirmed === null ? none : hiddenFields({ confirmed })}
${field('recipientPerHour', forAdmins)}${field('keyPerMinute', forAdmins)}</div>`,
)}
${may('operator') ? html`<div class="actions save"><button class="main">Save</button></div>` : none}</form>`
}

/** One that is not there any more stays until somebody chooses another. */
const toChoices = (transports: readonly string[], current: string) => [
  ['', 'the relays of the service'] as const,
  ...[...new Set([...transports, ...(current === '' ? [] : [current])])].map((name) => [name, name] as const),
]

export async function saveSettings(visit: Visit): Promise<PageAnswer> {
  const { form } = visit
  const app = await findApp(visit)
  const { fields } = showAgain(readSettings(app, paths), form, null)
  const body = toSettingsPatch(fields, paths)
  const unusual = await checkDaily(visit, app, readWhole(fields.daily ?? ''))
  const error = (unusual && (await findFaults(visit, app, body))) ?? unusual ?? (await saveApp(visit, app, body))
  if (error !== null) return settingsPage(visit, await findApp(visit), { error })
  return { redirect: `/apps/${app.slug}/settings`, notice: 'saved' }
}

/** The faults of settings without saving them: they come before a question. */
async function findFaults({ call }: Visit, { slug }: AppResource, settings: object): Promise<OperationError | null> {
  const checked = await call('app.preview', { params: { app: slug }, body: { type: 'magic_link', settings } })
  if (checked.ok) return null
  const issues = (checked.error.issues ?? []).map((issue) => ({
    ...issue,
    field: issue.field.replace(/^settings\./, ''),
  }))
  return { ...checked.error, issues }
}

function renderEnd(app: AppResource, visit: Visit, notDeleted: OperationError | null): Html {
  const { slug, status } = app
  const path = `/apps/${slug}/settings`
  const isServiceAdmin = visit.may('admin') && visit.seesAll
  const disable = section(
    'Disable this app',
    html`<p>Its keys are refused at once, and its mail is held, then cancelled after ${heldDays} days.</p>
${linkButton(`${path}?confirm=disable#confirm`, 'Disable…')}`,
  )
  const suspend = section(
    'Suspend this app',
    html`<p>As if it were disabled, but only an admin of the whole service can enable it again.</p>
${linkButton(`${path}?confirm=suspend#confirm`, 'Suspend…')}`,
  )
  const remove = section(
    'Delete this app',
    html`<p>Its keys are deleted, and its queued mail is cancelled.</p>
${linkButton(`${path}?confirm=delete#confirm`, 'Delete…')}`,
  )
  return html`${renderConfirmation(app, visit, notDeleted)}${status === 'active' ? disable : none}
${isServiceAdmin && status !== 'suspended' ? suspend : none}${isServiceAdmin && status !== 'active' ? remove : none}`
}

function renderConfirmation({ slug, status }: AppResource, visit: Visit, notDeleted: OperationError | null): Html {
  const { may, query, seesAll } = visit
  const path = `/apps/${slug}/settings`
  const asked = query.get('confirm')
  if (asked === 'disable' && status === 'active')
    return confirmation(
      `Disable ${slug}? Its keys are refused at once, so its users get no sign-in mail. Waiting mail is held, and cancelled after ${heldDays} days unless the app is enabled again.`,
      button(`/apps/${slug}/status`, 'Disable the app', { fields: { status: 'disabled' }, kind: 'danger' }),
      path,
    )
  if (asked === 'suspend' && status !== 'suspended' && may('admin') && seesAll)
    return confirmation(
      `Suspend ${slug}? Its keys are refused at once, so its users get no sign-in mail, and only an admin of the whole service can enable it again.`,
      button(`/apps/${slug}/status`, 'Suspend the app', { fields: { status: 'suspended' }, kind: 'danger' }),
      path,
    )
  const isDeleting = asked === 'delete' || notDeleted !== null
  if (!isDeleting || status === 'active' || !may('admin') || !seesAll) return problem(notDeleted)
  const { field, problem: faults } = deleteForm.show(notDeleted ? readTexts(visit.form) : {}, notDeleted)
  const form = html`<form method="post" action="/apps/${slug}/delete" class="filters">
${field('slug', { hint: slug })}
<button class="danger">Delete the app</button></form>`
  return html`${faults}${confirmation(
    `Delete ${slug} and its keys, and cancel its queued mail? This cannot be undone.`,
    form,
    path,
  )}`
}

export async function setStatus(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const status = appStatuses.find((name) => name === visit.form.get('status')) ?? 'disabled'
  const error = await saveApp(visit, app, { status })
  if (error !== null) return settingsPage(visit, app, { error })
  const notice = status === 'active' ? 'app_enabled' : (`app_${status}` as const)
  return { redirect: `/apps/${app.slug}/settings`, notice }
}

export async function deleteApp(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  if (visit.form.get('slug')?.trim() !== app.slug) {
    const issues = [{ field: 'slug', code: 'not_confirmed', message: `Type ${app.slug}. The app was not deleted.` }]
    const notDeleted = { code: 'invalid_request', message: 'The app was not deleted.', issues } as const
    return settingsPage(visit, app, { notDeleted })
  }
  const deleted = await visit.call('app.delete', { params: { app: app.slug } })
  if (deleted.ok) return { redirect: '/apps', notice: 'app_deleted' }
  if (deleted.error.code === 'not_found') throw new PageFailed(deleted.error)
  return settingsPage(visit, app, { notDeleted: deleted.error })
}
