/** The settings of an app besides links and look: its name, sender and limits; disabling and deleting it. */

import { heldDays } from '../../../../domain/bounds.ts'
import { formatCount } from '../../../../domain/counts.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource, UsageResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { button, confirmation, facts, field, inForm, problem, section, time } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { type Fields, optional, saveApp, showAgain, versionField } from './change.ts'

export const showSettings = async (visit: Visit): Promise<PageAnswer> =>
  settingsPage(visit, await findApp(visit), null)

async function settingsPage(
  visit: Visit,
  app: AppResource,
  refused: OperationError | null,
): Promise<PageAnswer> {
  const { fields, error } = showAgain(toFields(app), visit.form, refused)
  const { items: days } = await visit.get('app.usage', { params: { app: app.slug } })
  const body = html`${appHead(app, 'Settings')}
${problem(error)}${renderConfirmation(app, visit)}
${section('Sender and limits', renderForm(app, visit, { fields, error, days }))}
${section(
  'Facts',
  facts([
    ['Slug', app.slug],
    ['Id', html`<code>${app.id}</code>`],
    ['Version', formatCount(app.version)],
    ['Created', time(app.createdAt)],
    ['Changed', html`${time(app.updatedAt)} <a href="/audit?app=${app.slug}">history</a>`],
  ]),
)}
${visit.may('operator') ? section('Disable or delete', renderEnd(app, visit)) : none}`
  return {
    title: `Settings of ${app.name}`,
    body,
    nav: 'apps',
    ...(error && { status: toHttpStatus(error) }),
  }
}

const toFields = ({ name, from, envelopeFrom, replyTo, limits }: AppResource) => ({
  name,
  'from-name': from.name,
  'from-address': from.address,
  envelopeFrom: envelopeFrom ?? '',
  replyTo: replyTo ?? '',
  daily: String(limits.daily),
  recipientPerHour: String(limits.recipientPerHour),
  keyPerMinute: String(limits.keyPerMinute),
})

type FormParts = {
  readonly fields: Fields
  readonly error: OperationError | null
  readonly days: readonly UsageResource[]
}

function renderForm(app: AppResource, { may }: Visit, { fields, error, days }: FormParts): Html {
  const disabled = !may('admin')
  const value = (name: keyof ReturnType<typeof toFields>) => fields[name] ?? ''
  const most = Math.max(0, ...days.map(({ accepted }) => accepted))
  const note = disabled
    ? html`<p class="soft">The sender and the limits protect other apps of the same relay: only the role admin changes them.</p>`
    : none
  const at = { error, disabled }
  return html`${note}<form method="post" action="/apps/${app.slug}/settings" class="columns">${versionField(app)}
${field('name', { label: 'Name', value: value('name'), ...at })}
${field('from-name', { label: 'Sender name', value: value('from-name'), ...at })}
${field('from-address', { label: 'Sender address', value: value('from-address'), ...at })}
${field('envelopeFrom', {
  label: 'Address for bounces',
  value: value('envelopeFrom'),
  hint: 'Empty: the sender address.',
  ...at,
})}
${field('replyTo', { label: 'Answers go to', value: value('replyTo'), error, disabled: !may('operator') })}
${field('daily', {
  label: 'Emails a day (UTC)',
  value: value('daily'),
  hint: `Highest in 30 days: ${formatCount(most)}`,
  attributes: html`inputmode="numeric"`,
  ...at,
})}
${field('recipientPerHour', {
  label: 'Emails an hour to one recipient',
  value: value('recipientPerHour'),
  attributes: html`inputmode="numeric"`,
  ...at,
})}
${field('keyPerMinute', {
  label: 'Requests a minute by one key',
  value: value('keyPerMinute'),
  attributes: html`inputmode="numeric"`,
  ...at,
})}
${may('operator') ? html`<div class="actions"><button class="main">Save</button></div>` : none}</form>`
}

export async function saveSettings(visit: Visit): Promise<PageAnswer> {
  const { form } = visit
  const app = await findApp(visit)
  const saved = toFields(app)
  const text = (name: keyof typeof saved) => form.get(name)?.trim() ?? saved[name]
  const whole = (name: keyof AppResource['limits']) =>
    Number(text(name).replaceAll(/[\s,]/g, '') || Number.NaN)
  const body = {
    name: text('name'),
    from: { name: text('from-name'), address: text('from-address') },
    envelopeFrom: optional(text('envelopeFrom')),
    replyTo: optional(text('replyTo')),
    limits: {
      daily: whole('daily'),
      recipientPerHour: whole('recipientPerHour'),
      keyPerMinute: whole('keyPerMinute'),
    },
  }
  const error = await saveApp(visit, app, body)
  if (error !== null) return settingsPage(visit, await findApp(visit), inForm(error, fieldFor))
  return { redirect: `/apps/${app.slug}/settings`, notice: 'saved' }
}

/** The field of the form for a field of the settings. */
const fieldFor = (field: string): string => field.replace(/^limits\./, '').replace('.', '-')

function renderEnd({ slug, status }: AppResource, { may, seesAll }: Visit): Html {
  const path = `/apps/${slug}/settings`
  if (status === 'active')
    return html`<p>Disabling an app refuses its keys at once and holds its mail, which is cancelled after ${heldDays} days.</p>
<a class="button" href="${path}?confirm=disable#confirm">Disable…</a>`
  const remove =
    may('admin') && seesAll ? html`<a class="button" href="${path}?confirm=delete#confirm">Delete…</a>` : none
  return html`<p>The app is disabled: its keys are refused and its mail is held.</p>
<div class="actions">${button(`/apps/${slug}/status`, 'Enable', { fields: { status: 'active' }, kind: 'main' })}${remove}</div>`
}

function renderConfirmation({ slug, status }: AppResource, { may, query, seesAll }: Visit): Html {
  const path = `/apps/${slug}/settings`
  const asked = query.get('confirm')
  if (asked === 'disable' && status === 'active' && may('operator'))
    return confirmation(
      `Disable ${slug}? Its keys are refused at once, so its users get no sign-in mail.`,
      button(`/apps/${slug}/status`, 'Disable the app', { fields: { status: 'disabled' }, kind: 'danger' }),
      path,
    )
  if (asked !== 'delete' || status === 'active' || !may('admin') || !seesAll) return none
  const form = html`<form method="post" action="/apps/${slug}/delete" class="filters">
${field('slug', {
  label: `Type ${slug} to confirm`,
  attributes: html`required autocomplete="off" autocapitalize="none"`,
})}
<button class="danger">Delete the app</button></form>`
  return confirmation(
    `Delete ${slug} with its keys, and cancel its mail that waits? This cannot be undone.`,
    form,
    path,
  )
}

export async function setStatus(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const status = visit.form.get('status') === 'active' ? 'active' : 'disabled'
  const error = await saveApp(visit, app, { status })
  if (error !== null) return settingsPage(visit, app, error)
  return {
    redirect: `/apps/${app.slug}/settings`,
    notice: status === 'active' ? 'app_enabled' : 'app_disabled',
  }
}

export async function deleteApp(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  if (visit.form.get('slug')?.trim() !== app.slug) {
    const message = `The app was not deleted: "${app.slug}" must be typed to confirm it.`
    return settingsPage(visit, app, { code: 'invalid_request', message })
  }
  const deleted = await visit.call('app.delete', { params: { app: app.slug } })
  if (deleted.ok) return { redirect: '/apps', notice: 'app_deleted' }
  if (deleted.error.code === 'not_found') throw new PageFailed(deleted.error)
  return settingsPage(visit, app, deleted.error)
}
