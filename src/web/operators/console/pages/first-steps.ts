/**
 * The first steps: relay, app, key, test email. They come from what there is, so nothing is stored, and they
 * end by themselves.
 */
import { normalEntries, parseAllowedUrl } from '../../../../domain/app/allowed-entry.ts'
import { slugFrom } from '../../../../domain/app/app.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { NodeResource } from '../../../../management/resources.ts'
import { withAdvice } from '../../../../services/advice.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailInput, newForm, readTexts } from '../form.ts'
import { button, mark, section } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { withScheme } from './allow-entry.ts'
import { renderRelayState } from './delivery.ts'
import { renderRelayChecks } from './settings.ts'

export async function firstSteps(visit: Visit): Promise<PageAnswer> {
  const { checks, nodes } = await visit.get('status.show', {})
  const body = html`<h1>Welcome to Postern</h1>
<p class="lead">Three steps to your first email: a relay that answers, an app, and its key.</p>
${section('1. Relay', html`${relayStep(visit, nodes)}${renderRelayChecks(checks, visit.now)}`)}
${section(
  '2. App',
  html`<p>An app is one product that sends sign-in mail, with its sender, allow-list and limits.</p>${
    visit.may('admin') && visit.seesAll
      ? renderNewApp(visit, null)
      : html`<p class="soft">Only an admin of the whole service can create the first app.</p>`
  }`,
)}
${section('3. Key and test email', html`<p>The next page creates a key, shown once, with a command that sends an email; the app's page sends a test email.</p>`)}`
  return { title: 'Welcome', body, nav: 'overview' }
}

/** @param nodes the processes, with their relays; empty for a visit of some apps */
function relayStep({ may, seesAll, shell }: Visit, nodes: readonly NodeResource[]): Html {
  if (shell.hasInbox) return html`<p>${mark('good', 'The dev inbox captures every email.')} Nothing is sent.</p>`
  const check =
    may('operator') && seesAll
      ? button('/settings/checks', 'Check relays and database', { fields: { back: '/' } })
      : none
  const relays = new Map(
    nodes.filter(({ alive }) => alive).flatMap((node) => node.relays.map((relay) => [relay.name, relay])),
  )
  if (relays.size > 0) {
    const lines = [...relays.values()].map(
      ({ available, name, reason, tried }) =>
        html`<li><b>${name}</b> ${renderRelayState({ available, tried })}${reason === '' ? none : html` ${withAdvice(reason)}`}</li>`,
    )
    return html`<p>Mail will go to:</p><ul>${lines}</ul>${check}`
  }
  return html`<p>Set relays with <code>POSTERN_SMTP_URL</code> where the service runs.</p>${check}`
}

const newAppForm = newForm('new-app', {
  name: {
    label: 'Name',
    faults: ['from.name'],
    hint: 'The name your users know; shown in every email.',
    attributes: html`required maxlength="100" placeholder="Acme" autocomplete="off"`,
  },
  from: {
    label: 'Sender address',
    faults: ['from.address'],
    hint: 'An address your relay may send from.',
    attributes: html`required ${emailInput} placeholder="auth@acme.example" autocomplete="off"`,
  },
  allowedUrls: {
    label: 'Allowed link',
    hint: 'A site (https://app.acme.example), or a part of it (https://app.acme.example/auth/*). You can add more later.',
    attributes: html`required placeholder="https://app.acme.example/auth/*" spellcheck="false" autocomplete="off"`,
  },
  slug: {
    label: 'Slug (optional)',
    faults: ['slug_taken'],
    hint: 'Identifies the app in addresses and commands; never changes. If empty, it is made from the name.',
    attributes: html`maxlength="40" placeholder="acme" autocapitalize="none" autocomplete="off"`,
  },
})

/** The form for a new app, below what is wrong with it. */
function renderNewApp({ form }: Visit, error: OperationError | null): Html {
  const { field, problem } = newAppForm.show(readTexts(form), error)
  return html`${problem}<form method="post" action="/new-app" class="stack">
${field('name')}
${field('from')}
${field('allowedUrls')}
${field('slug')}
<div class="actions"><button class="main">Create the app</button></div></form>`
}

export function newApp(visit: Visit): PageAnswer {
  if (!visit.may('admin') || !visit.seesAll)
    throw new PageFailed({
      code: 'not_permitted',
      message: 'Only an admin of the whole service can create apps.',
    })
  return newAppPage(visit, null)
}

function newAppPage(visit: Visit, error: OperationError | null): PageAnswer {
  const body = html`<h1>New app</h1>
${section('An app is one product that sends sign-in mail', renderNewApp(visit, error))}`
  return { title: 'New app', body, nav: 'apps', ...(error && { status: toHttpStatus(error) }) }
}

export async function createApp(visit: Visit): Promise<PageAnswer> {
  const { form } = visit
  const text = (name: string) => (form.get(name) ?? '').trim()
  const slug = text('slug') || (slugFrom(text('name')) ?? '')
  const body = {
    name: text('name'),
    from: { name: text('name'), address: text('from') },
    allowedUrls: normalEntries(text('allowedUrls') === '' ? [] : [withScheme(text('allowedUrls'))], parseAllowedUrl),
  }
  const made = await visit.call('app.put', { params: { app: slug }, body, ifAbsent: true })
  if (!made.ok) return newAppPage(visit, made.error)
  return { redirect: `/apps/${slug}/keys`, notice: 'app_created' }
}
