/**
 * Where the turns among the apps of each transport continue. A claim passes a bounded number of apps whose
 * mail it may not take. If it found none, the next one goes on behind them, until all apps were seen.
 */
import { fruitlessMax } from '../../domain/bounds.ts'
import type { AppId } from '../../domain/id.ts'

type Turns = {
  /** The app that was served last, or passed last; empty at the beginning. */
  after: AppId | ''
  /** Where a search that has found nothing began; null if there is none. */
  soughtFrom: AppId | '' | null
  /** Claims of this search. */
  claims: number
}

export class AppTurns {
  readonly #turns = new Map<string | null, Turns>()

  /** @param transport null as in `ClaimRequest` */
  of(transport: string | null = null): Readonly<Turns> {
    return this.#turns.get(transport) ?? { after: '', soughtFrom: null, claims: 0 }
  }

  /**
   * Notes where a claim ended. Returns whether another one should go on now.
   * @param isFruitless it passed too many apps to see all, and took nothing
   */
  note(transport: string | null | undefined, after: AppId | '', isFruitless: boolean): boolean {
    const { after: before, claims, soughtFrom } = this.of(transport)
    const turns = isFruitless
      ? { after, soughtFrom: soughtFrom ?? before, claims: claims + 1 }
      : { after, soughtFrom: null, claims: 0 }
    this.#turns.set(transport ?? null, turns)
    return isFruitless && turns.claims % fruitlessMax !== 0
  }
}
