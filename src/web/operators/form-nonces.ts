/**
 * Nonces of forms that make a secret. A reload of the answer sends the form again, and must not make another
 * one.
 */
import { hash } from 'node:crypto'
import { dayMs } from '../../domain/duration.ts'
import type { Store } from '../../store/store.ts'

export type FormNonces = {
  /** False if the form was sent before. */
  readonly spend: (value: string) => Promise<boolean>
  /** The form made nothing, and may be sent again. */
  readonly restore: (value: string) => Promise<void>
}

const digest = (value: string): string => hash('sha256', `form ${value}`, 'base64url')

export const newFormNonces = (store: Store): FormNonces => ({
  spend: (value) => store.keepNonce(digest(value), store.now() + dayMs),
  restore: async (value) => void (await store.takeNonce(digest(value))),
})
