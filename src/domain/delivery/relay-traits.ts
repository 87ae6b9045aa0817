/** How relays treat the messages that they take. */

/**
 * As the documents of providers say. `rewrites`: `dates` the Date or the
 * Message-ID, `all` what it composes itself. `envelope`: its sender is the bounce address, that of From, or
 * one of the relay. `include`: the name that the provider asks to have in the SPF record.
 */
export type RelayTraits = {
  readonly rewrites: 'nothing' | 'dates' | 'all'
  readonly envelope: 'bounce' | 'from' | 'relay'
  readonly include: string | null
}

export const plainRelay: RelayTraits = { rewrites: 'nothing', envelope: 'bounce', include: null }

/** The traits of all relays together: a message is signed before its relay is chosen. */
export function combineTraits(traits: readonly RelayTraits[]): RelayTraits {
  const [first = plainRelay] = traits
  const isSame = traits.every(({ rewrites }) => rewrites === first.rewrites)
  return {
    rewrites: isSame ? first.rewrites : 'dates',
    envelope: traits.find(({ envelope }) => envelope !== 'relay')?.envelope ?? first.envelope,
    include: traits.find(({ include }) => include !== null)?.include ?? null,
  }
}
