/** The page of an auth server that sends its mail to an app, from its secret to a check. */

import { normalEntries, parseAllowedUrl } from '../../../../domain/app/allowed-entry.ts'
import type { AuthHook, Step } from '../../../../domain/auth-hooks/auth-hook.ts'
import { systemSettings } from '../../../../domain/auth-hooks/auth-hook-settings.ts'
import { findSystem } from '../../../../domain/auth-hooks/auth-hooks.ts'
import { isLoopback } from '../../../../domain/client-network.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { nameEmailType } from '../../email-types.ts'
import { newForm } from '../form.ts'
import { age, copyButton, mark, newSecret, section, shortId, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { readSettingsForm, renderSettings } from './app-connect-settings.ts'
import { appHead, findApp } from './apps.ts'
import { makeOnce, onceField, saveApp } from './change.ts'

type Secret = Answer<'auth_hook.list'>['items'][number]['secrets'][number]

const secretForm = newForm('secret', {
  secret: { label: 'Secret', attributes: html`required autocomplete="off" spellcheck="false"` },
})

type AuthHookPageState = { readonly error?: OperationError; readonly made?: Answer<'auth_hook.connect'> }

export const showAuthHook = async (visit: Visit): Promise<PageAnswer> => authHookPage(visit, await findApp(visit), {})

function requireSystem({ params }: Visit): AuthHook {
  const system = findSystem(params.system ?? '')
  if (system !== null) return system
  throw new PageFailed({ code: 'not_found', message: 'Postern knows no auth server of this name.' })
}

async function authHookPage(visit: Visit, app: AppResource, { error, made }: AuthHookPageState): Promise<PageAnswer> {
  const system = requireSystem(visit)
  const params = { app: app.slug, system: system.name }
  const [{ items }, { items: checked }] = await Promise.all([
    visit.get('auth_hook.list', { params }),
    visit.get('auth_hook.check', { params, body: {} }),
  ])
  const hook = items.find((item) => item.system === system.name)
  const secrets = hook?.secrets ?? []
  const steps = made?.steps ?? hook?.steps ?? []
  const ofSettings = visit.form.has('version')
  const settings = renderSettings(app, system, { visit, error: ofSettings ? (error ?? null) : null })
  const secret = secretForm.show({}, ofSettings ? null : (error ?? null))
  const body = html`${appHead(app, 'Connect', visit)}
<p class="crumbs"><a href="/apps/${app.slug}/connect">Auth servers</a> › ${system.title}</p>
${secret.problem}${settings.problem}${made === undefined ? none : renderMade(system, made)}
${section(
  '1. Secret',
  html`${renderSecrets(secrets, visit)}${visit.may('operator') ? renderMake(app, system, secret.field) : none}`,
)}
${hook === undefined || !isOnlyHere(hook.url) ? none : html`<div class="note"><p><b>${system.title} can reach this address only from this machine.</b> Set ${urlSetting(system)} to the public address, and restart; the steps then show it.</p></div>`}
${section(`2. At ${system.title}`, renderSteps(steps, undefined))}
${section('3. In Postern', html`${renderSteps(steps, 'postern')}${settings.form}`)}
${section('4. Check', renderCheck(checked, secrets.length > 0))}`
  return {
    title: `${system.title} of ${app.name}`,
    body,
    nav: 'apps',
    status: error === undefined ? (made === undefined ? 200 : 201) : toHttpStatus(error),
  }
}

const isOnlyHere = (url: string): boolean => isLoopback(URL.parse(url)?.hostname ?? '')

const urlSetting = ({ auth }: AuthHook): string =>
  auth.kind === 'login' ? 'POSTERN_SUBMISSION_URL' : 'POSTERN_AUTH_HOOKS_URL'

function renderMade({ title }: AuthHook, { oldExpiresAt, secret }: Answer<'auth_hook.connect'>): Html {
  const ends = oldExpiresAt === null ? none : html` The one before works until ${time(oldExpiresAt)}.`
  const text = html`It is shown only this once: Postern cannot show it again.${ends}`
  return newSecret(`Copy the secret for ${title} now`, text, secret)
}

function renderSecrets(secrets: readonly Secret[], { now }: Visit): Html {
  const rows = secrets
    .toReversed()
    .map(({ createdAt, createdBy, expiresAt, id, lastUsedAt }) => [
      shortId(id),
      expiresAt === null ? mark('quiet', 'active') : html`${mark('wait', 'replaced')} until ${time(expiresAt)}`,
      html`${age(createdAt, now)} <span class="soft">by ${createdBy}</span>`,
      age(lastUsedAt, now),
    ])
  return table('Secrets', ['Secret', 'Status', 'Made', 'Last used'], rows, { empty: 'No secret yet.' })
}

type Field = ReturnType<typeof secretForm.show>['field']

/** Postern makes the secret, or keeps one that the auth server made; some make their own always. */
function renderMake({ slug }: AppResource, { auth, name, title }: AuthHook, field: Field): Html {
  const isGiven = auth.kind === 'signed' && auth.makeSecret === null
  const hint = `${title} makes it and shows it once.`
  const form = (given: Html, label: string, kind: string) =>
    html`<form method="post" action="/apps/${slug}/connect/${name}" class="filters">${onceField()}
${given}<button class="${kind}">${label}</button></form>`
  const give = form(field('secret', { hint }), 'Keep the secret', isGiven ? 'main' : '')
  if (isGiven) return give
  const make = form(none, 'Create a secret', 'main')
  return auth.kind === 'signed'
    ? html`${make}<details><summary>Use a secret that ${title} made</summary>${give}</details>`
    : make
}

/** The steps at the auth server in their order, each other way folded; or what is set in Postern. */
function renderSteps(steps: readonly Step[], place: Step['place']): Html {
  const renderBlock = (block = '') =>
    block === '' ? none : html`<pre>${block}</pre>${block.includes('…') ? none : copyButton(block, 'Copy')}`
  const items = steps
    .filter((step) => step.place === place)
    .map(({ text, block }) => html`<li><p>${text}</p>${renderBlock(block)}</li>`)
  const others = steps
    .filter((step) => place === undefined && step.place === 'instead')
    .map(({ text, block }) => html`<details><summary>Or: ${text}</summary>${renderBlock(block)}</details>`)
  return html`${place === undefined ? html`<ol class="steps">${items}</ol>` : html`<ul class="steps">${items}</ul>`}${others}`
}

type Checked = Answer<'auth_hook.check'>['items'][number]

function renderCheck(items: readonly Checked[], isConnected: boolean): Html {
  const marks = {
    sent: mark('quiet', 'sent'),
    refused: isConnected ? mark('bad', 'refused') : mark('wait', 'not yet'),
    not_sent: mark('off', 'notice'),
  }
  // A change of address makes two emails, to both addresses.
  const alike = Map.groupBy(items, (item) => JSON.stringify({ ...item, expiresAt: null }))
  const rows = [...alike.values()].flatMap(([item, ...others]) =>
    item === undefined
      ? []
      : [
          [
            html`<code>${item.message ?? ''}</code>${others.length > 0 ? ` (${others.length + 1} emails)` : ''}`,
            marks[item.result],
            describeChecked(item),
          ],
        ],
  )
  return html`<p class="soft">What would happen to each message with the current settings. The hosts in these samples count as allowed; real links must be on the allow-list.</p>
${table('Messages', ['Message', 'Result', 'Email'], rows)}`
}

function describeChecked({ code, hosted, issues, purpose, refusal, type }: Checked): Html {
  if (issues.length > 0)
    return html`${issues.map(({ code: fault, message }) => html`${message} ${fault === 'page_missing' ? html`<a href="#hook-page">Set it</a> ` : none}`)}`
  if (refusal !== null) return html`${refusal.message}`
  if (type === null) return html`answered, and not sent`
  const parts = [
    nameEmailType(type),
    ...(purpose === null ? [] : [purpose.replace('_', ' ')]),
    hosted ? 'by a hosted link' : 'to a page of the app',
    ...(code ? ['with a code'] : []),
  ]
  return html`${parts.join(', ')}`
}

export async function connectAuthHook(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const system = requireSystem(visit)
  const secret = visit.form.get('secret')?.trim() ?? ''
  const body = secret === '' ? {} : { secret }
  const params = { app: app.slug, system: system.name }
  const made = await makeOnce(visit, () => visit.call('auth_hook.connect', { params, body }))
  if (!made.ok && made.error.code === 'not_found') throw new PageFailed(made.error)
  return authHookPage(visit, app, made.ok ? { made: made.value } : { error: made.error })
}

export async function saveAuthHook(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const { name, takes } = requireSystem(visit)
  const settings = readSettingsForm(visit, systemSettings(app.authHooks ?? {}, name))
  const given = Object.fromEntries(takes.map((setting) => [setting, settings[setting]]))
  const addresses = [settings.verifyUrl, settings.pages.default].flatMap((address) => address ?? [])
  const isAllowing = visit.form.get('allow') === 'yes'
  const allowed = isAllowing && { allowedUrls: normalEntries([...app.allowedUrls, ...addresses], parseAllowedUrl) }
  const error = await saveApp(visit, app, { authHooks: { [name]: given }, ...allowed })
  if (error !== null) return authHookPage(visit, await findApp(visit), { error })
  return { redirect: `/apps/${app.slug}/connect/${name}`, notice: 'saved' }
}
