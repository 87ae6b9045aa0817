import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuditAction } from '../../../../domain/operator/audit.ts'
import type { AuditResource } from '../../../../management/resources.ts'
import { describeAction } from './audit-sentences.ts'

const names = new Map([
  ['app_1', 'acme'],
  ['pe_1', 'Ada'],
])
const say = (action: AuditAction, change: Partial<AuditResource> = {}): string => {
  const entry: AuditResource = {
    ...{ id: 'au_1', at: '2026-11-25T00:00:00.000Z', action, app: 'app_1', target: 'app_1' },
    ...{ actor: { kind: 'person', id: 'pe_1', name: 'Ada' }, via: 'console', requestId: null },
    ...{ before: null, after: null, ...change },
  }
  return describeAction(entry, names).text.replace(/<[^>]+>/g, '')
}

const cases: [AuditAction, Partial<AuditResource>, string][] = [
  ['app.update', { after: { status: 'active' } }, 'enabled acme'],
  ['app.update', { after: { status: 'disabled' } }, 'disabled acme'],
  ['app.update', { before: { name: 'A' }, after: { name: 'B' } }, 'changed Name of acme'],
  ['email.retry_all', { app: null }, 'retried all deferred emails'],
  ['email.retry_all', {}, 'retried all deferred emails of acme'],
  ['report.read', { app: null }, 'read a report that names no email'],
  ['report.read', { target: 'em_1' }, 'read a report about an email of acme'],
  ['list.export', { target: 'everything' }, 'exported everything'],
  ['suppression.add', { app: null }, 'suppressed a recipient for all apps'],
  ['suppression.add', {}, 'suppressed a recipient of acme'],
  ['suppression.remove', { app: null }, 'ended a suppression for all apps'],
  ['suppression.remove', {}, 'ended a suppression of acme'],
  ['suppression.clear', { after: { removed: 7 } }, 'ended 7 suppressions'],
  ['webhook.secret', {}, 'made the webhook secret of acme'],
  ['webhook.secret', { after: { oldUntil: '2026-11-26T00:00:00Z' } }, 'replaced the webhook secret of acme'],
  ['person.update', { target: 'pe_1', after: { disabled: true } }, 'disabled Ada'],
  ['person.update', { target: 'pe_1', after: { disabled: false } }, 'enabled Ada'],
  ['person.update', { target: 'pe_1', after: { role: 'reader' } }, 'changed the access of Ada'],
  ['session.create', { after: { method: 'oidc' } }, 'signed in through the identity provider'],
  ['session.create', { after: {} }, 'signed in'],
  ['session.end', { after: { person: 'pe_1' } }, 'ended a session of Ada'],
  ['key.revoke', { target: 'key_1', before: { name: 'web' } }, 'revoked the key web of acme'],
]
for (const [action, change, sentence] of cases)
  test(`${action}: ${sentence}`, () => assert.equal(say(action, change), sentence))
