/**
 * The runs that have found something, each with what it was. The tests play them again, as they are and with
 * the repair undone.
 */
import type { Plant } from './episode.ts'

type Found = { readonly seed: number; readonly days: number; readonly what: string; readonly undo: Plant }

export const found: readonly Found[] = [
  {
    seed: 30_000,
    days: 8,
    what: 'emails that hung at one relay used the connections of the other, so nothing was sent for ten minutes',
    undo: {
      file: 'src/delivery/relay/gated-relay.ts',
      find: 'return this.#inProgress > 0 && this.free() <= 0 && !waitsForRate',
      replace: 'return false && !waitsForRate',
    },
  },
  {
    seed: 30_005,
    days: 10,
    what: 'a relay answered DATA with 250 and then 354, which counted as its refusal of the message',
    undo: {
      file: 'src/delivery/relay/smtp/smtp-session.ts',
      find: 'return /^[45]/.test(reply)',
      replace: 'return /^[345]/.test(reply)',
    },
  },
]
