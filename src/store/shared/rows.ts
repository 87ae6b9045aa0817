/**
 * Rows of both engines, which name their columns alike and keep JSON as text, and the values that the mail
 * path makes of them.
 */
import type { App, AppStatus } from '../../domain/app/app.ts'
import { suspectAfter } from '../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { EmailContent } from '../../domain/request/email-content.ts'
import type { Claim } from '../store.ts'

export type Row = Record<string, unknown>

/** Before the slug of an app's test side, whose row is beside that of the app. */
export const testSlug = 'test:'

export const toApp = (row: Row): App => ({
  id: row.app_id as AppId,
  slug: (row.slug as string).replace(testSlug, ''),
  version: row.version as number,
  status: row.status as AppStatus,
  createdAt: row.created_at as number,
  updatedAt: row.updated_at as number,
  settings: JSON.parse(row.settings as string),
})

/** The networks of a delivery key. */
export const toNetworks = (column: unknown): readonly string[] | null =>
  column === null ? null : JSON.parse(column as string)

/** The columns of `queue` that a claim is made of. */
export type ClaimRow = {
  readonly email_id: EmailId
  readonly app_id: AppId
  readonly type: Claim['type']
  readonly attempts: number
  readonly lost_leases: number
  readonly fence: number
  readonly accepted_at: number
  readonly expires_at: number
  readonly traceparent: string | null
}

export const toClaim = (row: ClaimRow, content: EmailContent, nowMs: number): Claim => ({
  emailId: row.email_id,
  fence: row.fence,
  appId: row.app_id,
  type: row.type,
  content,
  acceptedAt: row.accepted_at,
  expiresAt: row.expires_at,
  attempt: row.attempts,
  lifeLeftMs: row.expires_at - nowMs,
  ageMs: nowMs - row.accepted_at,
  traceparent: row.traceparent,
  isSuspect: row.lost_leases >= suspectAfter,
})
