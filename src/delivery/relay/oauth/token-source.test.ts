import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type GrantedToken, TokenFault, TokenSource } from './token-source.ts'

/** A server whose answers are given by hand, and a clock that is moved. */
function newServer() {
  const state = { nowMs: 0, asked: 0 }
  let waiting = Promise.withResolvers<GrantedToken>()
  const source = new TokenSource(
    () => {
      state.asked += 1
      waiting = Promise.withResolvers()
      return waiting.promise
    },
    () => state.nowMs,
  )
  const never = new AbortController().signal
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return {
    state,
    source,
    get: (signal = never) => source.get(signal),
    grant: async (text: string, expiresInSeconds = 3600) => {
      waiting.resolve({ text, expiresInSeconds })
      await settled()
    },
    fail: async () => {
      waiting.reject(new TokenFault('no', { lasting: false }))
      await settled()
    },
  }
}

async function newFilled() {
  const server = newServer()
  const first = server.get()
  await server.grant('one')
  assert.deepEqual(await first, { text: 'one', isKept: false })
  return server
}

test('twenty sessions at once ask for one token, and later ones for none', async () => {
  const { state, source, get, grant } = newServer()
  const asked = Array.from({ length: 20 }, () => get())
  await grant('one')
  for (const token of await Promise.all(asked)) assert.equal(token.text, 'one')
  state.nowMs = 0.8 * 3_600_000 - 1
  assert.deepEqual(await get(), { text: 'one', isKept: true })
  assert.equal(state.asked, 1)
  assert.equal(source.leftMs, 0.2 * 3_600_000 + 1)
})

test('from four fifths of its life on it is renewed beside its use, every 30 s until that succeeds', async () => {
  const { state, get, grant, fail } = await newFilled()
  state.nowMs = 0.8 * 3_600_000
  assert.equal((await get()).text, 'one')
  assert.equal(state.asked, 2)
  await fail()
  state.nowMs += 29_999
  assert.equal((await get()).text, 'one')
  assert.equal(state.asked, 2)
  state.nowMs += 1
  assert.equal((await get()).text, 'one')
  assert.equal(state.asked, 3)
  await grant('two')
  assert.equal((await get()).text, 'two')
})

test('with less than a minute left a session waits; if no token comes, the old one serves to its end', async () => {
  const { state, get, grant, fail } = await newFilled()
  state.nowMs = 3_600_000 - 59_999
  const failing = get()
  await fail()
  assert.deepEqual(await failing, { text: 'one', isKept: true })
  const renewed = get()
  await grant('two')
  assert.deepEqual(await renewed, { text: 'two', isKept: false })
  state.nowMs += 3_600_000
  const ended = assert.rejects(get(), TokenFault)
  await fail()
  await ended
})

test('a token that was refused is asked for anew; a newer one is not forgotten for it', async () => {
  const { state, source, get, grant } = await newFilled()
  source.forget('another')
  assert.equal((await get()).text, 'one')
  source.forget('one')
  const next = get()
  await grant('two')
  assert.deepEqual(await next, { text: 'two', isKept: false })
  source.forget('one')
  assert.equal((await get()).text, 'two')
  assert.equal(state.asked, 2)
})

test('a session that cannot wait goes without a token; the request goes on for the next one', async () => {
  const { state, get, grant } = newServer()
  const link = new AbortController()
  const waiting = assert.rejects(get(link.signal), { name: 'TokenFault', message: /none in time/ })
  link.abort()
  await waiting
  await assert.rejects(get(link.signal), TokenFault)
  await grant('one')
  assert.deepEqual(await get(), { text: 'one', isKept: true })
  assert.equal(state.asked, 1)
})
