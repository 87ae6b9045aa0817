/**
 * Nonces of forms that make a secret. A reload of the answer sends the form again, and must not make another
 * one.
 */
import { hash } from 'node:crypto'
import { dayMs } from '../../domain/duration.ts'
import type { Store } from '../../store/store.ts'

export type FormNonces = {
  /** False if the form was sent before. */
  readonly take: (nonce: string) => Promise<boolean>
  /** The form made nothing, and may be sent again. */
  readonly giveBack: (nonce: string) => Promise<void>
}

const digest = (nonce: string): string => hash('sha256', `form ${nonce}`, 'base64url')

export const newFormNonces = (store: Store): FormNonces => ({
  take: (nonce) => store.keepNonce(digest(nonce), store.now() + dayMs),
  giveBack: async (nonce) => void (await store.takeNonce(digest(nonce))),
})
