/** Every page of the console, with its address. */
import type { FastifyInstance } from 'fastify'
import { addPage, type Handler, type PageDeps } from '../visit.ts'
import { endOwnSession, removeOwnPasskey, setTimes, showAccount } from './account.ts'
import { connectAuthHook, saveAuthHook, showAuthHook } from './app-connect.ts'
import { listAuthHooks } from './app-connect-list.ts'
import { activateKey, addKey, checkDomain, proveDomain, removeKey, showDomain } from './app-domain.ts'
import { saveHosted, saveLinkDomain, showHostedLinks, showHostedPage } from './app-hosted-links.ts'
import { createKey, replaceKey, revokeKey, saveNetworks, showKeys } from './app-keys.ts'
import { addLink, removeLink, setCodes, setLocalhost, setSupersede, showLinks, testLink } from './app-links.ts'
import { saveLook, showLook, showLookEmail } from './app-look.ts'
import { deleteApp, saveSettings, setStatus, showSettings } from './app-settings.ts'
import {
  makeWebhookSecret,
  saveWebhook,
  sendWebhook,
  showWebhookMessage,
  showWebhooks,
  testWebhook,
} from './app-webhooks.ts'
import { saveWords, showWords, showWordsEmail } from './app-words.ts'
import { listApps, sendTestEmail, showApp } from './apps.ts'
import { showAudit } from './audit.ts'
import { showDelivery } from './delivery.ts'
import { cancelEmail, retryEmail, showEmail } from './email.ts'
import { listEmails, retryAll } from './emails.ts'
import { exportList } from './export.ts'
import { find } from './find.ts'
import { createApp, newApp } from './first-steps.ts'
import { overview } from './overview.ts'
import { invitePerson, showPeople } from './people.ts'
import { changePerson, endLink, linkPerson, removePasskey, showPerson } from './person.ts'
import { listRefusals, showRefusal } from './refusals.ts'
import { endSession, showSessions } from './sessions.ts'
import { runChecks, showAbout, showChecks } from './settings.ts'
import { addSuppression, clearSuppressions, removeSuppression, showSuppressions } from './suppressions.ts'
import { createToken, revokeToken, showTokens } from './tokens.ts'
import { checkTransport, removeTransport, saveTransport, showTransports } from './transports.ts'

type Line = `${'GET' | 'POST'} /${string}`

export const routes: readonly (readonly [Line, Handler])[] = [
  ['GET /', overview],
  ['POST /find', find],
  ['GET /apps', listApps],
  ['GET /new-app', newApp],
  ['POST /new-app', createApp],
  ['GET /apps/:app', showApp],
  ['POST /apps/:app/test-email', sendTestEmail],
  ['GET /apps/:app/links', showLinks],
  ['POST /apps/:app/links/add', addLink],
  ['POST /apps/:app/links/remove', removeLink],
  ['POST /apps/:app/links/test', testLink],
  ['POST /apps/:app/links/localhost', setLocalhost],
  ['POST /apps/:app/links/codes', setCodes],
  ['POST /apps/:app/links/supersede', setSupersede],
  ['GET /apps/:app/hosted-links', showHostedLinks],
  ['POST /apps/:app/hosted-links', saveHosted],
  ['POST /apps/:app/hosted-links/domain', saveLinkDomain],
  ['GET /apps/:app/hosted-links/page', showHostedPage],
  ['GET /apps/:app/look', showLook],
  ['POST /apps/:app/look', saveLook],
  ['GET /apps/:app/look/email', showLookEmail],
  ['GET /apps/:app/words', showWords],
  ['POST /apps/:app/words', saveWords],
  ['GET /apps/:app/words/email', showWordsEmail],
  ['GET /apps/:app/keys', showKeys],
  ['POST /apps/:app/keys', createKey],
  ['POST /apps/:app/keys/:key/networks', saveNetworks],
  ['POST /apps/:app/keys/:key/revoke', revokeKey],
  ['POST /apps/:app/keys/:key/replace', replaceKey],
  ['GET /apps/:app/connect', listAuthHooks],
  ['GET /apps/:app/connect/:system', showAuthHook],
  ['POST /apps/:app/connect/:system', connectAuthHook],
  ['POST /apps/:app/connect/:system/settings', saveAuthHook],
  ['GET /apps/:app/domain', showDomain],
  ['POST /apps/:app/domain/prove', proveDomain],
  ['POST /apps/:app/domain/check', checkDomain],
  ['POST /apps/:app/domain/keys', addKey],
  ['POST /apps/:app/domain/keys/:selector/activate', activateKey],
  ['POST /apps/:app/domain/keys/:selector/remove', removeKey],
  ['GET /apps/:app/webhooks', showWebhooks],
  ['POST /apps/:app/webhooks', saveWebhook],
  ['POST /apps/:app/webhooks/secret', makeWebhookSecret],
  ['POST /apps/:app/webhooks/test', testWebhook],
  ['GET /apps/:app/webhooks/:message', showWebhookMessage],
  ['POST /apps/:app/webhooks/:message/send', sendWebhook],
  ['GET /apps/:app/settings', showSettings],
  ['POST /apps/:app/settings', saveSettings],
  ['POST /apps/:app/status', setStatus],
  ['POST /apps/:app/delete', deleteApp],
  ['GET /refusals', listRefusals],
  ['GET /refusals/:request', showRefusal],
  ['GET /emails', listEmails],
  ['POST /emails/retry', retryAll],
  ['GET /emails/:email', showEmail],
  ['POST /emails/:email/retry', retryEmail],
  ['POST /emails/:email/cancel', cancelEmail],
  ['GET /delivery', showDelivery],
  ['GET /suppressions', showSuppressions],
  ['POST /suppressions', addSuppression],
  ['POST /suppressions/clear', clearSuppressions],
  ['POST /suppressions/:suppression/remove', removeSuppression],
  ['GET /audit', showAudit],
  ['POST /export', exportList],
  ['GET /settings', showChecks],
  ['GET /settings/checks', showChecks],
  ['POST /settings/checks', runChecks],
  ['GET /settings/about', showAbout],
  ['GET /settings/people', showPeople],
  ['POST /settings/people', invitePerson],
  ['GET /settings/people/:person', showPerson],
  ['POST /settings/people/:person', changePerson],
  ['POST /settings/people/:person/link', linkPerson],
  ['POST /settings/people/:person/link/end', endLink],
  ['POST /settings/people/:person/passkeys/remove', removePasskey],
  ['GET /settings/tokens', showTokens],
  ['POST /settings/tokens', createToken],
  ['POST /settings/tokens/:token/revoke', revokeToken],
  ['GET /settings/transports', showTransports],
  ['POST /settings/transports', saveTransport],
  ['POST /settings/transports/:transport/check', checkTransport],
  ['POST /settings/transports/:transport/remove', removeTransport],
  ['GET /settings/sessions', showSessions],
  ['POST /settings/sessions/:session/end', endSession],
  ['GET /account', showAccount],
  ['POST /account/times', setTimes],
  ['POST /account/sessions/:session/end', endOwnSession],
  ['POST /account/passkeys/remove', removeOwnPasskey],
]

export function addRoutes(pages: FastifyInstance, deps: PageDeps): void {
  for (const [line, handler] of routes) addPage(pages, deps, line, handler)
}
