/** The scripts of the store's methods, by the names of the methods. */

import { callFunction, type StoreFunction } from '../shared/methods.ts'
import { activityChanges, activityNotes, activityReads } from './activity.ts'
import { appChanges, appReads } from './apps.ts'
import { auditChanges, auditReads } from './audit.ts'
import { emailReads, emailSnapshots } from './emails.ts'
import { forgetChanges } from './forget.ts'
import { idReads } from './ids.ts'
import { inboxDeliveries, inboxReads } from './inbox.ts'
import { keyChanges, keyReads } from './keys.ts'
import { missingKeyReads } from './missing-keys.ts'
import { nonceChanges } from './nonces.ts'
import { peopleChanges } from './people.ts'
import { peopleReads } from './people-reads.ts'
import { probes } from './probe.ts'
import { queueReads } from './queue-counts.ts'
import { reportChanges, reportReads } from './reports.ts'
import type { Script, ScriptContext } from './script.ts'
import { signingKeyChanges, signingKeyReads } from './signing-keys.ts'
import { suppressionChanges, suppressionReads } from './suppressions.ts'
import { tokenChanges, tokenNotes, tokenReads } from './tokens.ts'
import { transportChanges, transportReads } from './transports.ts'
import { webhookChanges, webhookDeliveries, webhookReads } from './webhooks.ts'

/** Each runs in a transaction of its own, or as if it did. */
export const changes = {
  ...appChanges,
  ...keyChanges,
  ...tokenChanges,
  ...peopleChanges,
  ...nonceChanges,
  ...activityChanges,
  ...auditChanges,
  ...forgetChanges,
  ...reportChanges,
  ...suppressionChanges,
  ...signingKeyChanges,
  ...transportChanges,
  ...webhookChanges,
  ...webhookDeliveries,
  ...inboxDeliveries,
}

/**
 * Changes whose statements need no transaction around them. All processes count in the same rows: one that
 * stalled between a statement and its commit would make the others wait.
 */
export const notes = { ...activityNotes, ...tokenNotes, ...probes }

export const reads = {
  ...appReads,
  ...keyReads,
  ...tokenReads,
  ...peopleReads,
  ...activityReads,
  ...auditReads,
  ...emailReads,
  ...queueReads,
  ...reportReads,
  ...suppressionReads,
  ...signingKeyReads,
  ...transportReads,
  ...webhookReads,
  ...inboxReads,
  ...missingKeyReads,
  ...idReads,
}

/** Reads whose statements all see one state of the database. */
export const snapshotReads = { ...emailSnapshots }

/** A script with its arguments, which were checked where its method was called. */
export const bindScript =
  (script: StoreFunction, args: readonly unknown[]) =>
  (context: ScriptContext): Script<unknown> =>
    callFunction(script, context, args) as Script<unknown>
