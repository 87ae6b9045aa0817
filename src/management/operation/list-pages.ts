/**
 * Cursors of lists. A cursor is the last id of a page, sealed: it tells nothing, and opens only for the
 * filters that it was made for, because with others it would skip items.
 */
import { Type } from 'typebox'
import type { AppId } from '../../domain/id.ts'
import type { ListPage } from '../../store/operator-store.ts'
import { cutPage } from '../../store/scripts/list-pages.ts'
import type { Management } from '../context.ts'
import { done, fail, type Result } from './result.ts'

export const pageQuery = {
  cursor: Type.Optional(Type.String({ maxLength: 200, description: 'The `next` of the previous page.' })),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 200,
      description: 'The maximum number of items in a page (default: 50).',
    }),
  ),
}

type PageQuery = { readonly cursor?: string; readonly limit?: number }

export const readLimit = ({ limit = 50 }: PageQuery): number => limit

/** A list is named by its operation; `filters` are those of the request. */
type ListFilters = {
  readonly list: 'apps' | 'keys' | 'emails' | 'tokens' | 'people' | 'sessions' | 'audit' | 'suppressions' | 'refusals'
} & Readonly<Record<string, unknown>>

type Sealing = Pick<Management, 'cursors'>

const prefix = 'cu_'

export const cursorAfter = ({ cursors }: Sealing, id: string | null, filters: ListFilters): string | null =>
  id === null ? null : `${prefix}${cursors.seal(JSON.stringify(filters), id)}`

/** The id that a cursor holds; null without a cursor. */
export function readCursor<Id extends string>(
  { cursors }: Sealing,
  { cursor }: PageQuery,
  filters: ListFilters,
): Result<Id | null> {
  if (cursor === undefined) return done(null)
  const id = cursor.startsWith(prefix) ? cursors.open(JSON.stringify(filters), cursor.slice(prefix.length)) : null
  if (id !== null) return done(id as Id)
  return fail('cursor_mismatch', 'The cursor belongs to another list or other filters. Start again without it.')
}

/** In the body of a request that is repeated until it is done. */
export const afterField = () =>
  Type.Optional(Type.String({ maxLength: 200, description: 'The `next` of the request before.' }))

/** The place where such a request goes on, which was sealed by this name; empty at the beginning. */
export function readPlace({ cursors }: Sealing, name: string, after: string | undefined): Result<readonly string[]> {
  if (after === undefined) return done([])
  const place = cursors.open(name, after)
  if (place !== null) return done(place.split(' '))
  return fail('cursor_mismatch', 'This `after` is not the `next` of such a request.')
}

/** One page of a list that is read whole, in the order of the ids. */
export function cutList<Item extends { readonly id: string }>(
  sealing: Sealing,
  items: readonly Item[],
  query: PageQuery,
  filters: ListFilters,
): Result<{ items: Item[]; next: string | null }> {
  const cursor = readCursor(sealing, query, filters)
  if (!cursor.ok) return cursor
  const rest = items.filter(({ id }) => cursor.value === null || id > cursor.value)
  const page = rest.slice(0, readLimit(query))
  const last = rest.length > page.length ? (page.at(-1)?.id ?? null) : null
  return done({ items: page, next: cursorAfter(sealing, last, filters) })
}

/**
 * One page of the items of several apps, newest first. The apps are read in turn, so that one request is one
 * reader.
 */
export async function mergePages<Item extends { readonly id: Id }, Id extends string>(
  apps: readonly AppId[],
  limit: number,
  read: (app: AppId) => Promise<ListPage<Item, Id>>,
): Promise<ListPage<Item, Id>> {
  const pages: ListPage<Item, Id>[] = []
  for (const app of apps) pages.push(await read(app))
  const items = pages.flatMap((page) => page.items).toSorted((a, b) => (a.id < b.id ? 1 : -1))
  return cutPage(
    items,
    pages.map(({ next }) => next),
    limit,
  ) as ListPage<Item, Id>
}
