/** The webhooks of an app: their address and secret, how the receiver does, and the last messages. */
import { setTimeout as sleep } from 'node:timers/promises'
import { webhookPauseMaxMs } from '../../../../domain/bounds.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { describeDuration } from '../../../../domain/duration.ts'
import { shortenId } from '../../../../domain/id.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { newForm, problem } from '../form.ts'
import { age, button, copied, copyButton, due, facts, mark, newSecret, region, section, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { makeOnce, onceField, optional, saveApp, showAgain, versionField } from './change.ts'

type Listed = Answer<'webhook.list'>

type WebhookPageState = {
  readonly error?: OperationError
  readonly made?: Answer<'webhook.secret'>
}

const addressForm = newForm('webhook', {
  webhookUrl: {
    label: 'Address',
    attributes: html`type="url" spellcheck="false" autocomplete="off" placeholder="https://app.acme.example/postern"`,
    hint: 'Postern POSTs each message to this URL. Leave it empty to send nothing.',
  },
})

export const showWebhooks = async (visit: Visit): Promise<PageAnswer> => webhooksPage(visit, await findApp(visit), {})

async function webhooksPage(
  visit: Visit,
  app: AppResource,
  { error: refused, made }: WebhookPageState,
): Promise<PageAnswer> {
  const listed = await visit.get('webhook.list', { params: { app: app.slug } })
  const saved = { webhookUrl: app.webhookUrl ?? '' }
  const { fields, error } = showAgain(saved, visit.form, refused ?? null)
  const { field, problem: faults } = addressForm.show(fields, error)
  const isOwner = visit.may('admin') && visit.seesAll
  const address = isOwner
    ? html`<form method="post" action="/apps/${app.slug}/webhooks" class="columns">${versionField(app, visit.form, error)}
${field('webhookUrl')}
<div class="actions"><button class="main">Save</button></div></form>`
    : html`${facts([['Address', listed.url ?? 'none']])}<p class="soft">An admin of the whole service sets it, because it decides where Postern connects to.</p>`
  const body = html`${appHead(app, 'Webhooks', visit)}
${faults}${made === undefined ? none : renderSecret(made)}
${section(
  'Webhooks',
  html`<p>${app.name} can be notified of emails that bounced, failed, were suppressed, or were reported as spam.</p>${address}`,
)}
${section('Secret', renderSecretState(app, listed, visit))}
${region('messages', section('Last messages', renderMessages(app, listed, visit)))}`
  const status = error ? toHttpStatus(error) : made === undefined ? 200 : 201
  return { title: `Webhooks of ${app.name}`, body, nav: 'apps', live: `webhooks:${app.id}`, status }
}

const renderSecret = ({ oldSecretUntil, secret }: Answer<'webhook.secret'>): Html =>
  newSecret(
    'Copy the secret now',
    html`It is shown only this once. The receiver verifies the messages with it.${oldSecretUntil === null ? none : html` The old secret signs as well until ${time(oldSecretUntil)}.`}`,
    secret,
  )

function renderSecretState({ slug }: AppResource, { hasSecret, oldSecretUntil }: Listed, visit: Visit): Html {
  const state = hasSecret
    ? html`<p>Every message is signed with the app’s secret (Standard Webhooks).${oldSecretUntil === null ? none : html` The old one signs as well until ${time(oldSecretUntil)}.`}</p>`
    : html`<p>The app has no secret, so nothing is sent.</p>`
  if (!visit.may('admin')) return state
  return html`${state}<form method="post" action="/apps/${slug}/webhooks/secret">${onceField()}
<button class="${hasSecret ? '' : 'main'}">${hasSecret ? 'Replace the secret' : 'Create a secret'}</button></form>`
}

/** While its receiver fails, one message at a time is tried. */
const renderNextTry = (nextTryAt: string, failingSince: string | null, now: number): Html =>
  Date.parse(nextTryAt) > now || failingSince === null
    ? due(nextTryAt, now)
    : html`within ${describeDuration(webhookPauseMaxMs)}, or once the receiver accepts another`

const marks = { waiting: 'wait', sent: 'quiet', given_up: 'bad' } as const
const states = { waiting: 'waiting', sent: 'sent', given_up: 'given up' } as const

function renderMessages({ slug }: AppResource, { failingSince, hasSecret, items, url }: Listed, visit: Visit): Html {
  const { may, now } = visit
  const failing =
    failingSince === null
      ? none
      : html`<p>${mark('bad', 'failing')} The receiver has failed since ${time(failingSince)}: ${items.find(({ result }) => result !== null)?.result ?? 'no answer'}. Once it is repaired, send a test message: when the receiver accepts it, all waiting messages are sent.</p>`
  const test =
    url === null || !hasSecret || !may('operator')
      ? none
      : html`<div class="actions after">${button(`/apps/${slug}/webhooks/test`, 'Send a test message')}</div>`
  const rows = items.map(({ at, email, event, id, lastTryAt, nextTryAt, result, state, tries }) => [
    html`<a href="/apps/${slug}/webhooks/${id}"><b>${event}</b></a><br>${age(at, now)}`,
    email === null ? html`–` : html`<a href="/emails/${email}">${shortenId(email)}</a>`,
    html`${mark(marks[state], states[state])}${result === null ? none : html`<br><span class="reply">${result}</span>`}`,
    html`${tries}${lastTryAt === null ? none : html`, the last ${age(lastTryAt, now)}`}${nextTryAt === null ? none : html`<br><span class="soft">next ${renderNextTry(nextTryAt, failingSince, now)}</span>`}`,
  ])
  const empty = 'No message was sent yet.'
  return html`${failing}${test}${table('Messages', ['Message', 'Email', 'State', 'Tries'], rows, { empty })}`
}

export async function saveWebhook(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const error = await saveApp(visit, app, { webhookUrl: optional(visit.form.get('webhookUrl')) })
  if (error !== null) return webhooksPage(visit, await findApp(visit), { error })
  return { redirect: `/apps/${app.slug}/webhooks`, notice: 'saved' }
}

export async function makeWebhookSecret(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const params = { app: app.slug }
  const made = await makeOnce(visit, () => visit.call('webhook.secret', { params, body: {} }))
  if (!made.ok && made.error.code === 'not_found') throw new PageFailed(made.error)
  return webhooksPage(visit, app, made.ok ? { made: made.value } : { error: made.error })
}

export async function testWebhook(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const queued = await visit.call('webhook.test', { params: { app: app.slug }, body: {} })
  if (!queued.ok) return webhooksPage(visit, app, { error: queued.error })
  await waitForResult(visit, app, queued.value.id)
  return { redirect: `/apps/${app.slug}/webhooks`, notice: 'webhook_queued' }
}

export const showWebhookMessage = async (visit: Visit): Promise<PageAnswer> =>
  messagePage(visit, await findApp(visit), null)

/** One message: its JSON, and the answer of the receiver. */
async function messagePage(visit: Visit, app: AppResource, error: OperationError | null): Promise<PageAnswer> {
  const params = { app: app.slug, message: visit.params.message ?? '' }
  const message = await visit.get('webhook.show', { params })
  const { at, email, event, id, keepsRecipient, nextTryAt, payload, response, result, state, tries } = message
  const { failingSince, lastTryAt, trail } = message
  const back = `/apps/${app.slug}/webhooks`
  const send = visit.may('operator')
    ? button(`${back}/${id}/send`, state === 'waiting' ? 'Send now' : 'Send again')
    : none
  const isTest = email === null
  const recipient = isTest
    ? none
    : html`<p class="soft">${keepsRecipient ? 'Postern adds the recipient as data.to when it sends the message; no page shows it.' : 'The recipient is no longer kept, so it is sent without data.to.'}</p>`
  const body = html`<p class="crumbs"><a href="${back}">Webhooks of ${app.name}</a> › ${shortenId(id)}</p>
<div class="title"><h1>${event}</h1>${region('state', mark(marks[state], states[state]))}<div class="actions">${send}</div></div>
${problem(error)}
<div class="pair">${section(
    'Message',
    html`${facts([
      ['Message', copied(id)],
      ['Happened', time(at)],
      ['Email', email === null ? null : html`<a href="/emails/${email}">${shortenId(email)}</a>`],
    ])}<pre>${JSON.stringify(JSON.parse(payload), null, 2)}</pre>${copyButton(payload, 'Copy the payload')}${recipient}`,
  )}
${region(
  'answer',
  section(
    'Last try',
    html`${facts([
      [
        'Tries',
        html`${formatCount(tries)}${lastTryAt === null ? none : html`, the last ${age(lastTryAt, visit.now)}`}`,
      ],
      ['Answer', result ?? 'none yet'],
      ['Response', response === null ? null : html`<span class="reply">${response}</span>`],
      ['Next try', nextTryAt === null ? null : renderNextTry(nextTryAt, failingSince, visit.now)],
    ])}${
      trail.length < 2
        ? none
        : table(
            'Tries',
            ['Try', 'Answer'],
            trail.toReversed().map((each) => [time(each.at), each.result]),
          )
    }`,
  ),
)}</div>`
  const status = error === null ? 200 : toHttpStatus(error)
  return { title: `${event} of ${app.name}`, body, nav: 'apps', live: `webhooks:${app.id}`, status }
}

export async function sendWebhook(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const { message = '' } = visit.params
  const sent = await visit.call('webhook.send', { params: { app: app.slug, message }, body: {} })
  if (!sent.ok && sent.error.code === 'not_found') throw new PageFailed(sent.error)
  if (!sent.ok) return messagePage(visit, app, sent.error)
  await waitForResult(visit, app, sent.value.id)
  return { redirect: `/apps/${app.slug}/webhooks/${sent.value.id}`, notice: 'webhook_sent' }
}

/** A receiver mostly answers at once, and the page then shows its answer. */
const waitMs = 5000
const askEveryMs = 200

async function waitForResult(visit: Visit, { slug }: AppResource, id: string): Promise<void> {
  const endMs = performance.now() + waitMs
  for (;;) {
    const { result } = await visit.get('webhook.show', { params: { app: slug, message: id } })
    if (result !== null || performance.now() > endMs) return
    await sleep(askEveryMs)
  }
}
