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
]
