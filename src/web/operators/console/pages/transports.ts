/** Transports: lists of relays that apps may use instead of those of the service. */
import { relaysPerTransport } from '../../../../domain/delivery/transport.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { newForm, readTexts } from '../form.ts'
import { age, button, confirmation, linkButton, mark, section, table } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { findingsTable, settingsPage } from './settings.ts'

const path = '/settings/transports'

const transportForm = newForm('transport', {
  name: {
    label: 'Name',
    hint: 'Lower-case letters, digits and hyphens. If the transport exists, its relays are replaced.',
    attributes: html`autocomplete="off" spellcheck="false" autocapitalize="none"`,
    faults: ['transport', 'too_many_transports'],
  },
  relays: {
    label: 'Relay URLs',
    hint: html`Up to ${relaysPerTransport}, separated by spaces, in the order in which they are tried: <code>smtp://user:password@smtp.acme.example:587</code>. They are stored encrypted and never shown again.`,
    attributes: html`autocomplete="off" spellcheck="false" autocapitalize="none"`,
  },
})

type Transport = Answer<'transport.list'>['items'][number]

type State = {
  readonly error?: OperationError
  readonly checked?: Pick<Answer<'transport.check'>, 'findings'> & { readonly title: string }
}

export const showTransports = (visit: Visit): Promise<PageAnswer> => transportsPage(visit, {})

async function transportsPage(visit: Visit, { checked, error }: State): Promise<PageAnswer> {
  const { items } = await visit.get('transport.list', {})
  const rows = items.map((transport) => [
    html`<b>${transport.name}</b>`,
    transport.fault === null
      ? html`${transport.relays.map((relay) => html`${relay}<br>`)}`
      : html`${mark('bad', 'unusable')} ${transport.fault}`,
    renderApps(transport),
    age(transport.changedAt, visit.now),
    renderButtons(visit, transport),
  ])
  const heads = ['Transport', 'Relays', 'Apps', 'Changed', '']
  const empty = 'No transport yet. All mail goes through the relays of POSTERN_SMTP_URL.'
  const removed = items.find(({ name }) => name === visit.query.get('remove'))
  return settingsPage(
    visit,
    'Transports',
    html`<p>A transport is a named list of relays. An app that uses one sends only through its relays; choose it in the settings of the app. Changes take effect within 5 seconds.</p>
${
  removed === undefined
    ? none
    : confirmation(
        `Remove the transport “${removed.name}”? The secrets of its relays are deleted.`,
        button(`${path}/${removed.name}/remove`, 'Remove the transport', { kind: 'danger' }),
        path,
      )
}
${checked === undefined ? none : section(checked.title, findingsTable(checked.title, checked.findings))}
${section('Transports', table('Transports', heads, rows, { empty }))}
${visit.may('admin') ? section('Add or replace a transport', renderForm(visit, error ?? null)) : none}`,
    error,
  )
}

const renderApps = ({ apps }: Transport): Html =>
  apps.length === 0
    ? html`<span class="soft">none</span>`
    : html`${apps.map((slug, n) => html`${n === 0 ? '' : ', '}<a href="/apps/${slug}/settings">${slug}</a>`)}`

const renderButtons = ({ may }: Visit, { apps, name }: Transport): Html => {
  const check = may('operator') ? button(`${path}/${name}/check`, `Check ${name}`) : none
  const isFree = may('admin') && apps.length === 0
  return html`<div class="actions">${check}${isFree ? linkButton(`${path}?remove=${name}#confirm`, 'Remove…', name) : none}</div>`
}

function renderForm(visit: Visit, error: OperationError | null): Html {
  // URLs hold secrets, so no page repeats them.
  const texts = { name: error === null ? '' : (readTexts(visit.form).name ?? '') }
  const { field, problem } = transportForm.show(texts, error)
  return html`${problem}<form method="post" action="${path}" class="stack">
${field('name')}
${field('relays')}
<div class="actions"><button class="main">Save the transport</button></div>
</form>`
}

export async function saveTransport(visit: Visit): Promise<PageAnswer> {
  const texts = readTexts(visit.form)
  const transport = (texts.name ?? '').trim()
  const relays = (texts.relays ?? '').split(/[\s,]+/).filter(Boolean)
  const saved = await visit.call('transport.put', { params: { transport }, body: { relays } })
  if (!saved.ok) return transportsPage(visit, { error: saved.error })
  return { redirect: path, notice: 'transport_saved' }
}

export async function checkTransport(visit: Visit): Promise<PageAnswer> {
  const name = visit.params.transport ?? ''
  const { findings, ok } = await visit.get('transport.check', { params: { transport: name } })
  return transportsPage(visit, { checked: { title: ok ? `${name} can be used` : `${name} has faults`, findings } })
}

export async function removeTransport(visit: Visit): Promise<PageAnswer> {
  await visit.get('transport.delete', { params: { transport: visit.params.transport ?? '' } })
  return { redirect: path, notice: 'transport_removed' }
}
