import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { operator } from '../../test/support/operator.ts'
import { newSender, startTestService, validBody } from '../../test/support/service.ts'
import { newDeliveryKey } from '../domain/app/delivery-key.ts'
import type { EndedEmail } from '../domain/delivery/states.ts'
import { type EnqueueRequest, type EnqueueResult, StoreUnavailable } from '../store/store.ts'
import { type AcceptDeps, acceptEmail, isKnownKey } from './accept-email.ts'
import { AppPolicyCache } from './app-policy-cache.ts'

const { store } = await startTestService({ after }, { roles: new Set(['api']) })
let serial = 0

/** An intake on a real store, whose `enqueue` may be led astray, and what it did. */
function newIntake(enqueue = store.enqueue) {
  const seen = {
    waits: 0,
    queued: 0,
    ended: [] as EndedEmail[],
    asked: [] as EnqueueRequest[],
    mayWait: true as boolean | undefined,
  }
  const deps: AcceptDeps = {
    store: {
      now: store.now,
      nameRecipient: store.nameRecipient,
      enqueue: (request) => {
        seen.asked.push(request)
        return enqueue(request)
      },
    },
    policies: new AppPolicyCache(),
    links: { baseUrl: null, seal: () => assert.fail('no hosted links') },
    waitForTurn: () => {
      seen.waits++
      return seen.mayWait === undefined ? undefined : Promise.resolve(seen.mayWait)
    },
    onQueued: () => void seen.queued++,
    onSuperseded: (email) => void seen.ended.push(email),
    onSuppressed: (email) => void seen.ended.push(email),
  }
  const post = (key: string, body: object = validBody(), idempotencyKey?: string) =>
    acceptEmail(deps, {
      authorization: `Bearer ${key}`,
      idempotencyKey,
      address: () => '192.0.2.7',
      body: {
        contentType: 'application/json',
        contentEncoding: undefined,
        bytes: Buffer.from(JSON.stringify(body)),
      },
    })
  return { deps, seen, post }
}

const codeOf = (answer: Awaited<ReturnType<typeof acceptEmail>>) =>
  'rejection' in answer ? answer.rejection.code : answer.replayed ? 'replayed' : 'queued'

test('the first request of a key costs two calls of the store, each further one costs one', async () => {
  const { key } = await newSender({ store }, `intake-${serial++}`)
  const { deps, post, seen } = newIntake()
  assert.equal(isKnownKey(deps.policies, `Bearer ${key}`), false)
  assert.equal(codeOf(await post(key)), 'queued')
  assert.deepEqual(
    seen.asked.map(({ judged }) => judged === null),
    [true, false],
  )
  assert.equal(isKnownKey(deps.policies, `Bearer ${key}`), true)
  assert.equal(codeOf(await post(key)), 'queued')
  assert.deepEqual([seen.asked.length, seen.queued], [3, 2])
})

test('a replay wakes no worker', async () => {
  const { key } = await newSender({ store }, `intake-${serial++}`)
  const { post, seen } = newIntake()
  const body = validBody()
  assert.equal(codeOf(await post(key, body, 'once')), 'queued')
  assert.equal(codeOf(await post(key, body, 'once')), 'replayed')
  assert.equal(seen.queued, 1)
})

test('only valid requests wait while mail is delayed; one that waited in vain is not queued', async () => {
  const { key } = await newSender({ store }, `intake-${serial++}`)
  const { post, seen } = newIntake()
  await post(key)
  const before = { waits: seen.waits, asked: seen.asked.length }
  assert.equal(codeOf(await post(key, {})), 'invalid_body')
  assert.deepEqual([seen.waits, seen.asked.length], [before.waits, before.asked + 1])
  seen.mayWait = false
  const late = await post(key)
  assert.deepEqual([codeOf(late), seen.asked.length], ['queue_unavailable', before.asked + 1])
  assert.ok('rejection' in late && /behind with its mail/.test(late.rejection.message ?? ''))
  seen.mayWait = undefined
  assert.equal(codeOf(await post(key)), 'queued')
})

test('settings that change under each judgement end in an answer, after four', async () => {
  const { app, key } = await newSender({ store }, `intake-${serial++}`)
  let version = 0
  const { post, seen } = newIntake(async (request): Promise<EnqueueResult> => {
    await store.updateApp(app.id, { settings: { ...app.settings, name: `Name ${version++}` } }, operator)
    return store.enqueue(request)
  })
  const answer = await post(key)
  assert.equal(codeOf(answer), 'queue_unavailable')
  assert.ok('error' in answer && /changed several times/.test(answer.error?.message ?? ''))
  assert.deepEqual([seen.asked.length, seen.queued], [4, 0])
})

test('a store that does not answer is a 503 with its cause; any other error is a bug', async () => {
  const { key } = await newSender({ store }, `intake-${serial++}`)
  const down = newIntake(() => Promise.reject(new StoreUnavailable('the disk is full')))
  const answer = await down.post(key)
  assert.equal(codeOf(answer), 'queue_unavailable')
  assert.ok('error' in answer && answer.error?.message === 'the disk is full')
  const broken = newIntake(() => Promise.reject(new TypeError('x')))
  await assert.rejects(broken.post(key), TypeError)
})

test('a key that was revoked is refused and forgotten, and an unknown one never kept', async () => {
  const { key, keyId } = await newSender({ store }, `intake-${serial++}`)
  const { deps, post } = newIntake()
  await post(key)
  await store.revokeKey(keyId, operator)
  assert.equal(codeOf(await post(key)), 'invalid_key')
  assert.equal(isKnownKey(deps.policies, `Bearer ${key}`), false)
  const unknown = newDeliveryKey()
  assert.equal(codeOf(await post(unknown)), 'invalid_key')
  assert.equal(isKnownKey(deps.policies, `Bearer ${unknown}`), false)
})
