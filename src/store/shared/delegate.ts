/**
 * The store methods that an engine runs all in one way, by name and arguments. Their results are not
 * checked here: the conformance suite calls each of them on both engines.
 */
import type { Store } from '../store.ts'

export function delegate<Name extends keyof Store>(
  names: readonly Name[],
  run: (name: Name, args: readonly unknown[]) => unknown,
): Pick<Store, Name> {
  const methods = names.map((name) => [name, (...args: readonly unknown[]) => run(name, args)] as const)
  // A cast, because `Object.fromEntries` forgets the names: each is in `names`, with a function.
  return Object.fromEntries(methods) as Pick<Store, Name>
}
