import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listAll } from './list-all.ts'

type Page = { readonly limit: number; readonly cursor?: string }

/** A list of 500 numbers, as pages; and what was asked for. */
function newList(part: 'query' | 'body') {
  const asked: object[] = []
  const call = async (_name: string, input: object) => {
    const given = Reflect.get(input, part) as Page
    asked.push(given)
    const from = Number(given.cursor ?? 0)
    const next = from + given.limit
    const items = Array.from({ length: Math.min(next, 500) - from }, (_, n) => from + n)
    return { items, next: next < 500 ? String(next) : null }
  }
  return { asked, call: call as never }
}

test('a list is read in pages of 200, to its end', async () => {
  const { asked, call } = newList('query')
  const items = await listAll(call, 'email.list', { query: { app: 'acme' } })
  assert.equal(items.length, 500)
  assert.deepEqual(asked, [
    { app: 'acme', limit: 200 },
    { app: 'acme', limit: 200, cursor: '200' },
    { app: 'acme', limit: 200, cursor: '400' },
  ])
})

test('no more is asked for than the limit', async () => {
  const { asked, call } = newList('body')
  const items = await listAll(call, 'email.find', { body: { to: 'ada@example.com' } }, 250)
  assert.equal(items.length, 250)
  assert.deepEqual(asked, [
    { to: 'ada@example.com', limit: 200 },
    { to: 'ada@example.com', limit: 50, cursor: '200' },
  ])
})
