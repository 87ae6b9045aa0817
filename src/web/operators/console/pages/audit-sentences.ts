/** Sentences for the entries of the audit, after the name of the person or program. */
import { shortenId } from '../../../../domain/id.ts'
import type { AuditAction } from '../../../../domain/operator/audit.ts'
import type { AuditResource } from '../../../../management/resources.ts'
import { type Html, html } from '../../../../templates/html.ts'
import type { Slugs } from './app-names.ts'
import { findChanges, nameField } from './audit-changes.ts'

type Facts = {
  readonly app: Html
  readonly target: Html
  readonly name: Html
  /** The person whose session it is. */
  readonly person: Html
  readonly entry: AuditResource
}

const email = ({ target }: AuditResource) => html`<a href="/emails/${target}">an email</a>`

/** By the method of a sign-in. */
const methods: Readonly<Record<string, string>> = {
  code: ' with a link',
  passkey: ' with a passkey',
  oidc: ' through the identity provider',
}

const namedMax = 2

/** The settings that were changed: by name if they are few. */
function nameChanged(entry: AuditResource): string {
  const names = [...new Set(findChanges(entry).map(({ path }) => nameField(path)))]
  return names.length === 0 || names.length > namedMax ? 'the settings' : names.join(' and ')
}

const sentences: Readonly<Record<AuditAction, (facts: Facts) => Html>> = {
  'app.create': ({ app }) => html`created the app ${app}`,
  'app.update': ({ app, entry }) =>
    entry.after?.status === undefined
      ? html`changed ${nameChanged(entry)} of ${app}`
      : html`${entry.after.status === 'active' ? 'enabled' : String(entry.after.status)} ${app}`,
  'app.delete': ({ target }) => html`deleted the app ${target}`,
  'app.test_email': ({ app }) => html`sent a test email from ${app}`,
  'key.create': ({ app, name }) => html`created the key ${name} of ${app}`,
  'key.update': ({ app, name }) => html`changed the key ${name} of ${app}`,
  'key.replace': ({ app, name }) => html`replaced the key ${name} of ${app}`,
  'key.revoke': ({ app, name }) => html`revoked the key ${name} of ${app}`,
  'email.find': () => html`searched for an address`,
  'email.retry': ({ app, entry }) => html`retried ${email(entry)} of ${app}`,
  'email.retry_all': ({ app, entry }) =>
    entry.app === null ? html`retried all deferred emails` : html`retried all deferred emails of ${app}`,
  'email.cancel': ({ app, entry }) => html`cancelled ${email(entry)} of ${app}`,
  'recipient.forget': () => html`deleted the records of a recipient`,
  'report.read': ({ app, entry }) =>
    entry.app === null ? html`read a report that names no email` : html`read a report about ${email(entry)} of ${app}`,
  'suppression.find': () => html`searched for a suppressed address`,
  'suppression.add': ({ app, entry }) =>
    entry.app === null ? html`suppressed a recipient for all apps` : html`suppressed a recipient of ${app}`,
  'suppression.remove': ({ app, entry }) =>
    entry.app === null ? html`ended a suppression for all apps` : html`ended a suppression of ${app}`,
  'suppression.clear': ({ entry: { after } }) => html`ended ${String(after?.removed)} suppressions`,
  'domain.check': ({ app }) => html`checked the domain of ${app}`,
  'domain.add_key': ({ target }) => html`added the signing key ${target}`,
  'domain.activate_key': ({ target }) => html`activated the signing key ${target}`,
  'domain.remove_key': ({ target }) => html`removed the signing key ${target}`,
  'transport.put': ({ entry: { before }, target }) =>
    html`${before === null ? 'added' : 'changed'} the transport ${target}`,
  'transport.delete': ({ target }) => html`removed the transport ${target}`,
  'webhook.secret': ({ app, entry: { after } }) =>
    after?.oldUntil === undefined
      ? html`made the webhook secret of ${app}`
      : html`replaced the webhook secret of ${app}`,
  'webhook.test': ({ app }) => html`sent a test webhook to ${app}`,
  'webhook.send': ({ app }) => html`sent a webhook message of ${app} at once`,
  'list.export': ({ entry, target }) =>
    entry.target === 'everything' ? html`exported everything` : html`exported the list of ${target}`,
  'token.create': ({ name }) => html`created the token ${name}`,
  'token.revoke': ({ name }) => html`revoked the token ${name}`,
  'person.create': ({ name }) => html`invited ${name}`,
  'person.update': ({ name, entry: { after } }) =>
    after?.disabled === undefined
      ? html`changed the access of ${name}`
      : html`${after.disabled === true ? 'disabled' : 'enabled'} ${name}`,
  'sign_in.code': ({ name }) => html`made a sign-in link for ${name}`,
  'sign_in.end_code': ({ name }) => html`ended the sign-in link of ${name}`,
  'session.create': ({ entry: { after } }) => html`signed in${methods[String(after?.method)] ?? ''}`,
  'session.end': ({ person }) => html`ended a session of ${person}`,
  'passkey.add': ({ name }) => html`added the passkey ${name}`,
  'passkey.remove': ({ name }) => html`removed the passkey ${name}`,
  'checks.run': () => html`ran the checks`,
}

/** @param names the apps and people by their ids */
export function describeAction(entry: AuditResource, names: Slugs): Html {
  const { action, after, app, before, target } = entry
  const slug = app === null ? undefined : names.get(app)
  const person = String(after?.person ?? '')
  const given = after?.name ?? before?.name ?? names.get(target)
  return sentences[action]({
    entry,
    app: slug === undefined ? html`${target}` : html`<a href="/apps/${slug}">${slug}</a>`,
    target: html`${target}`,
    name: linkTo(target, slug, renderName(target, given)),
    person: linkTo(person, slug, renderName(person, names.get(person))),
  })
}

const renderName = (id: string, name: unknown): Html =>
  typeof name === 'string' ? html`<b>${name}</b>` : html`<code title="${id}">${shortenId(id)}</code>`

/** Keys and people have a page. */
function linkTo(target: string, slug: string | undefined, name: Html): Html {
  if (target.startsWith('key_') && slug !== undefined) return html`<a href="/apps/${slug}/keys">${name}</a>`
  if (target.startsWith('pe_')) return html`<a href="/settings/people/${target}">${name}</a>`
  return name
}
