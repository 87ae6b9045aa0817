/** All operations, by name. The management API, both command lines and their tests walk this table. */
import type { Static, TSchema } from 'typebox'
import { changeApp, deleteApp, putApp } from './apps/change-app.ts'
import { checkLink } from './apps/check-link.ts'
import { listAppNames, listApps, showApp } from './apps/list-apps.ts'
import { listRefusals, showRefusal } from './apps/refusals.ts'
import { previewEmail, sendTestEmail } from './apps/sample-email.ts'
import { checkAuthHook, connectAuthHook, listAuthHooks } from './auth-hooks/auth-hooks.ts'
import { checkDomainOfApp, proveDomain } from './domains/check-domain.ts'
import { activateKey, addKey, removeKey, showDomain } from './domains/signing-keys.ts'
import { cancelEmail, findEmails, listEmails, retryAll, retryEmail, showEmail } from './emails/emails.ts'
import { forgetRecipient } from './emails/forget-recipient.ts'
import { listInbox, waitForEmail } from './inbox/inbox.ts'
import { changeKey, createKey, findKey, listKeys, replaceKey, revokeKey, showKey } from './keys/keys.ts'
import type { AnyOperation, Input, NoBody } from './operation/operation.ts'
import type { Result } from './operation/result.ts'
import { changeAccount, endOwnSession, endSession, listSessions, removeOwnPasskey, whoami } from './people/account.ts'
import {
  changePerson,
  endLink,
  invitePerson,
  linkPerson,
  listPeople,
  removePasskey,
  showMade,
} from './people/people.ts'
import { readReports, showReports } from './reports/reports.ts'
import { describeService } from './service/describe-service.ts'
import { exportList } from './service/export-list.ts'
import { listAudit } from './service/list-audit.ts'
import { runChecks } from './service/run-checks.ts'
import { listUsage, showActivity, showUsage } from './service/show-activity.ts'
import { showQueue } from './service/show-queue.ts'
import { showStatus } from './service/show-status.ts'
import {
  addSuppression,
  clearSuppressions,
  findSuppressions,
  listSuppressions,
  removeSuppression,
} from './suppressions/suppressions.ts'
import { createToken, listTokens, revokeToken } from './tokens/tokens.ts'
import { checkTransport, deleteTransport, listTransports, putTransport } from './transports/transports.ts'
import { listWebhooks, makeWebhookSecret, sendWebhookAgain, showWebhook, testWebhook } from './webhooks/webhooks.ts'

const operations = {
  'app.list': listApps,
  'app.names': listAppNames,
  'app.put': putApp,
  'app.show': showApp,
  'app.change': changeApp,
  'app.delete': deleteApp,
  'app.check_link': checkLink,
  'app.preview': previewEmail,
  'app.test_email': sendTestEmail,
  'app.usage': showUsage,
  'usage.list': listUsage,
  'refusal.list': listRefusals,
  'refusal.show': showRefusal,
  'inbox.list': listInbox,
  'inbox.wait': waitForEmail,
  'key.list': listKeys,
  'key.create': createKey,
  'key.find': findKey,
  'key.show': showKey,
  'key.change': changeKey,
  'key.replace': replaceKey,
  'key.revoke': revokeKey,
  'email.list': listEmails,
  'email.find': findEmails,
  'email.retry_all': retryAll,
  'email.show': showEmail,
  'email.retry': retryEmail,
  'email.cancel': cancelEmail,
  'recipient.forget': forgetRecipient,
  'report.show': showReports,
  'report.read': readReports,
  'suppression.list': listSuppressions,
  'suppression.find': findSuppressions,
  'suppression.add': addSuppression,
  'suppression.remove': removeSuppression,
  'suppression.clear': clearSuppressions,
  'domain.show': showDomain,
  'domain.prove': proveDomain,
  'domain.check': checkDomainOfApp,
  'domain.add_key': addKey,
  'domain.activate_key': activateKey,
  'domain.remove_key': removeKey,
  'auth_hook.list': listAuthHooks,
  'auth_hook.connect': connectAuthHook,
  'auth_hook.check': checkAuthHook,
  'webhook.list': listWebhooks,
  'webhook.secret': makeWebhookSecret,
  'webhook.test': testWebhook,
  'webhook.show': showWebhook,
  'webhook.send': sendWebhookAgain,
  'transport.list': listTransports,
  'transport.put': putTransport,
  'transport.check': checkTransport,
  'transport.delete': deleteTransport,
  'service.show': describeService,
  'status.show': showStatus,
  'queue.show': showQueue,
  'activity.show': showActivity,
  'checks.run': runChecks,
  'audit.list': listAudit,
  'list.export': exportList,
  'token.list': listTokens,
  'token.create': createToken,
  'token.revoke': revokeToken,
  'person.list': listPeople,
  'person.invite': invitePerson,
  'person.change': changePerson,
  'person.link': linkPerson,
  'person.end_link': endLink,
  'person.made': showMade,
  'person.remove_passkey': removePasskey,
  'account.change': changeAccount,
  'account.remove_passkey': removeOwnPasskey,
  'account.end_session': endOwnSession,
  'session.list': listSessions,
  'session.end': endSession,
  whoami,
}

export type OperationName = keyof typeof operations
type Operation<Name extends OperationName> = (typeof operations)[Name]

export const operationNames = Object.keys(operations) as OperationName[]

export const findOperation = (name: OperationName): AnyOperation => operations[name]

type InputOf<Name extends OperationName> =
  Operation<Name> extends { path: infer Path extends string; query: infer Query; body: infer Body }
    ? Input<Path, Query & TSchema, Body & TSchema>
    : never

type NeededParts<Name extends OperationName> =
  | (Operation<Name>['path'] extends `${string}{${string}` ? 'params' : never)
  | (Operation<Name>['body'] extends NoBody ? never : 'body')

/** The input of an operation. `params` and `body` are needed where the operation has them. */
export type CallInput<Name extends OperationName> = Partial<InputOf<Name>> & Pick<InputOf<Name>, NeededParts<Name>>

export type Answer<Name extends OperationName> = Static<Operation<Name>['answer']>

/** Runs operations: in this process, or over HTTP in another one. */
export interface OperationRunner {
  call<Name extends OperationName>(name: Name, input: CallInput<Name>): Promise<Result<Answer<Name>>>
}
