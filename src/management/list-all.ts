/** Reads a whole list, page by page. */
import type { Answer, CallInput, OperationName } from './operations.ts'

/** Operations whose answers are pages of a list. */
export type ListName = Extract<
  OperationName,
  | 'app.list'
  | 'key.list'
  | 'email.list'
  | 'email.find'
  | 'token.list'
  | 'person.list'
  | 'session.list'
  | 'audit.list'
  | 'refusal.list'
  | 'suppression.list'
>

/** Runs an operation and returns its answer. */
type Call = <Name extends OperationName>(name: Name, input: CallInput<Name>) => Promise<Answer<Name>>

const pageMax = 200

/** The items of a list; at most `limit`. */
export async function listAll<Name extends ListName>(
  call: Call,
  name: Name,
  input: CallInput<Name>,
  limit = Number.POSITIVE_INFINITY,
): Promise<Answer<Name>['items']> {
  const items: unknown[] = []
  let cursor: string | null = null
  const part = name === 'email.find' ? 'body' : 'query'
  do {
    const page = { limit: Math.min(pageMax, limit - items.length), ...(cursor !== null && { cursor }) }
    const given: object = input[part] ?? {}
    const paged = { ...input, [part]: { ...given, ...page } }
    const answer: { items: unknown[]; next: string | null } = await call(name, paged as CallInput<Name>)
    items.push(...answer.items)
    cursor = answer.next
  } while (cursor !== null && items.length < limit)
  return items as Answer<Name>['items']
}
