/**
 * Makes methods of a store from functions that take what they work on (a transaction, a connection) before
 * their arguments.
 */

/** Without types of its arguments: these are checked where a method is called. */
export type StoreFunction = (on: never, ...args: never[]) => unknown
type StoreFunctions = Readonly<Record<string, StoreFunction>>

/** The final value of a script or a promise, or the value itself. */
type Outcome<R> = R extends Generator<unknown, infer T, never> ? T : Awaited<R>

export type Methods<O> = {
  [Name in keyof O]: O[Name] extends (on: never, ...args: infer Args) => infer R
    ? (...args: Args) => Promise<Outcome<R>>
    : never
}

/** @param run calls the function of a name; its result must be that of the function */
export function toMethods<O extends StoreFunctions>(
  functions: O,
  run: (name: keyof O & string, args: readonly unknown[]) => Promise<unknown>,
): Methods<O> {
  const methods = Object.keys(functions).map((name) => [name, (...args: readonly unknown[]) => run(name, args)])
  // A cast, because `Object.fromEntries` forgets the names and `run` the types.
  return Object.fromEntries(methods) as Methods<O>
}

/** Calls a function, with arguments that were checked where its method was called. */
export const callFunction = (called: StoreFunction, on: unknown, args: readonly unknown[]): unknown =>
  (called as (on: unknown, ...args: readonly unknown[]) => unknown)(on, ...args)
