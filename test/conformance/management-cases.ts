/** Conformance: tokens, the names of keys, the audit, and lists page by page. */
import assert from 'node:assert/strict'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { auditDays, keepDays, keysMax, scanMax } from '../../src/domain/bounds.ts'
import { type KeyId, newId } from '../../src/domain/id.ts'
import { hashToken, newToken } from '../../src/domain/operator/management-token.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { Store } from '../../src/store/store.ts'
import { listEmails, operator } from '../support/operator.ts'
import { testSettings } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { repeat } from '../support/wait.ts'
import { claim, day, deferred, delivered, type It, newKey, newSender, request, updateApp } from './subject.ts'

const keyOf = (name: string | null, expiresAt: number | null = null) => ({
  hash: hashDeliveryKey(newDeliveryKey()),
  name,
  expiresAt,
})

const actions = async (store: Store): Promise<string[]> =>
  (await store.listAudit({ limit: 100 })).items.map(({ action }) => action).toReversed()

export function management(it: It): void {
  it('every change writes one entry, and what changes nothing writes none', async (_t, { store, advance }) => {
    const { app, keyId } = await newSender(store, 'a')
    const same = await updateApp(store, app.id, { settings: app.settings, status: 'active' })
    assert.equal(same.version, app.version)
    await updateApp(store, app.id, { settings: { ...app.settings, name: 'New' } })
    await store.updateKey(keyId, { name: 'web' }, operator)
    await store.updateKey(keyId, { name: 'web' }, operator)
    const next = { ...keyOf(null), oldExpiresAt: store.now() + 60_000 }
    await store.replaceKey(keyId, next, operator)
    await store.revokeKey(keyId, operator)
    await store.revokeKey(keyId, operator)
    await store.updateApp(app.id, { status: 'disabled' }, operator)
    await store.deleteApp(app.id, operator)
    await store.deleteApp(app.id, operator)
    const expected = [
      ...['app.create', 'key.create', 'app.update', 'key.update', 'key.replace', 'key.revoke'],
      ...['app.update', 'app.delete'],
    ]
    assert.deepEqual(await actions(store), expected)
    const { items } = await store.listAudit({ limit: 9, actions: ['app.update'] })
    assert.deepEqual([items[1]?.before, items[1]?.after], [{ name: 'Acme' }, { name: 'New' }])
    assert.deepEqual(items[0]?.actor, operator)
    assert.deepEqual([items[0]?.app, items[0]?.target], [app.id, 'a'])
    advance((auditDays - 1) * day)
    await store.maintain()
    assert.deepEqual(await actions(store), expected)
    advance(2 * day)
    await store.maintain()
    assert.deepEqual(await actions(store), [])
  })

  it('of a list, the audit keeps the entries that differ; changes of settings that fill it are refused for a day', async (_t, {
    store,
    advance,
  }) => {
    const { app } = await newSender(store, 'a')
    const other = await newSender(store, 'b')
    const long = (letter: string) =>
      Array.from({ length: 8 }, (_, n) => `https://${letter}${n}.acme.test/${'x'.repeat(1800)}`)
    const allow = (urls: readonly string[]) => {
      advance(1) // entries of one millisecond have no order
      return store.updateApp(app.id, { settings: { ...app.settings, allowedUrls: urls } }, operator)
    }
    const [kept, ...rest] = long('a')
    assert.equal(typeof (await allow([kept ?? '', ...rest])), 'object')
    assert.equal(typeof (await allow([kept ?? '', 'https://new.acme.test'])), 'object')
    const [entry] = (await store.listAudit({ limit: 1, app: app.id })).items
    assert.deepEqual(entry?.before, { allowedUrls: rest })
    assert.deepEqual(entry?.after, { allowedUrls: ['https://new.acme.test'] })
    await allow(['https://new.acme.test', kept ?? ''])
    const newest = async () => (await store.listAudit({ limit: 1, app: app.id })).items[0]
    await allow(['https://new.acme.test', kept ?? '', 'https://more.acme.test'])
    const added = { before: { allowedUrls: [] }, after: { allowedUrls: ['https://more.acme.test'] } }
    assert.deepEqual({ before: (await newest())?.before, after: (await newest())?.after }, added)
    await allow(['https://new.acme.test', kept ?? ''])
    assert.deepEqual((await newest())?.before, added.after, 'and the other way round')
    await allow([kept ?? '', 'https://new.acme.test'])
    await allow(['https://new.acme.test', kept ?? ''])
    const [reordered] = (await store.listAudit({ limit: 1, app: app.id })).items
    assert.deepEqual(reordered?.after, { allowedUrls: ['https://new.acme.test', kept] }, 'the order alone')

    const before = await store.readAuditedToday([app.id])
    await allow(long('b'))
    const grown = (await store.readAuditedToday([app.id])) - before
    assert.ok(grown > 16_000 && grown < 17_500, `${grown} characters`)
    assert.ok((await store.readAuditedToday([other.app.id])) < 2000, 'each app counts its own')
    assert.equal(await store.readAuditedToday([other.app.id, app.id]), before + grown, 'the most of several')
    const token = { kind: 'token', id: newId('tok', 0), name: 'ci', via: 'api', requestId: null } as const
    await store.updateApp(other.app.id, { status: 'disabled' }, token)
    assert.ok((await store.readAuditedToday([token.id])) > 300, 'each actor, too')
    advance(day)
    assert.equal(await store.readAuditedToday([app.id, token.id]), 0)
    await allow(['https://a.test'])
    assert.ok((await store.readAuditedToday([app.id])) < 20_000, 'a new day begins at nothing')
  })

  it('changes of emails write entries; those that are refused write none', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const [held] = await claim(store)
    assert.ok(held)
    await store.retryEmail(held.emailId, operator)
    await store.cancelEmail(held.emailId, operator)
    await store.recordOutcome(held, deferred(600_000))
    await store.retryEmail(held.emailId, operator)
    await store.retryEmail(held.emailId, operator)
    await store.retryDeferred([sender.app.id], null, operator)
    for (const again of await claim(store)) await store.recordOutcome(again, deferred(600_000))
    await store.retryDeferred([sender.app.id], null, operator)
    await store.retryDeferred(null, null, null)
    await store.cancelEmail(held.emailId, operator)
    await store.cancelEmail(held.emailId, operator)
    const made = ['app.create', 'key.create']
    assert.deepEqual(await actions(store), [...made, 'email.retry', 'email.retry_all', 'email.cancel'])
    await store.recordAction(
      { action: 'checks.run', app: null, target: 'service', before: null, after: null },
      operator,
    )
    assert.equal((await actions(store)).at(-1), 'checks.run')
  })

  it('an app is created disabled if that is asked for', async (_t, { store }) => {
    const app = await store.createApp('a', testSettings, operator, 'disabled')
    assert.equal(app?.status, 'disabled')
    assert.equal(app?.updatedAt, app?.createdAt)
  })

  it('a name belongs to one key of an app that has not ended', async (_t, { store, advance }) => {
    const { app } = await newSender(store, 'a')
    const other = await newSender(store, 'b')
    const first = await newKey(store, { app: app.id, ...keyOf('web', store.now() + 60_000) })
    assert.equal(first.createdBy, 'test')
    assert.equal(await store.createKey({ app: app.id, ...keyOf('web') }, operator), 'name_taken')
    await newKey(store, { app: other.app.id, ...keyOf('web') })
    const { hash, ...api } = keyOf('api')
    const second = await newKey(store, { app: app.id, hash, ...api })
    assert.equal(await store.updateKey(second.id, { name: 'web' }, operator), 'name_taken')
    advance(60_000)
    const renamed = await store.updateKey(second.id, { name: 'web' }, operator)
    assert.ok(renamed !== null && typeof renamed === 'object' && renamed.name === 'web')
    assert.equal(await store.updateKey(first.id, { name: 'late' }, operator), 'ended')
    assert.equal(await store.updateKey(newId('key', 0), { name: 'x' }, operator), null)
    assert.equal(await store.createKey({ app: newId('app', 0), ...keyOf('x') }, operator), null)
    assert.deepEqual(await store.findKey(second.id), renamed)
    assert.deepEqual(await store.findKeyByHash(hash), renamed)
    assert.equal(await store.findKeyByHash(keyOf('x').hash), null)
  })

  it('keys made at the same moment with one name: one of them is made', async (t, { store, reopen }) => {
    const { app } = await newSender(store, 'a')
    const other = await reopen()
    atEnd(t, () => other.close())
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        (n % 2 ? store : other).createKey({ app: app.id, ...keyOf('web') }, operator),
      ),
    )
    assert.equal(made.filter((key) => key !== 'name_taken').length, 1)
  })

  it('tokens made at the same moment with one name: one of them is made', async (t, { store, reopen }) => {
    const other = await reopen()
    atEnd(t, () => other.close())
    const wanted = { name: 'deployments', role: 'reader', apps: null, expiresAt: store.now() + day } as const
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        (n % 2 ? store : other).createToken({ ...wanted, hash: hashToken(newToken()) }, operator),
      ),
    )
    assert.equal(made.filter((token) => token !== 'name_taken').length, 1)
  })

  it('the end of a key is moved, and the keys that end soon are listed', async (_t, { store, advance }) => {
    const { app } = await newSender(store, 'a')
    const key = await newKey(store, { app: app.id, ...keyOf('web', store.now() + day) })
    const expiring = async () => (await store.listExpiringKeys(store.now() + 7 * day)).map(({ id }) => id)
    assert.deepEqual(await expiring(), [key.id])
    await store.updateKey(key.id, { expiresAt: null }, operator)
    assert.deepEqual(await expiring(), [])
    const replaced = await newKey(store, { app: app.id, ...keyOf('old') })
    const next = { ...keyOf(null), oldExpiresAt: store.now() + day }
    await store.replaceKey(replaced.id, next, operator)
    assert.deepEqual(await expiring(), [], 'a key that is replaced ends on purpose')
    const [successor] = (await store.listKeys(app.id)).toReversed()
    assert.ok(successor)
    await store.revokeKey(successor.id, operator)
    assert.deepEqual(await expiring(), [replaced.id], 'nothing takes its place')
    await store.revokeKey(replaced.id, operator)
    await store.updateKey(key.id, { expiresAt: store.now() + day }, operator)
    advance(2 * day)
    assert.deepEqual(await expiring(), [])
  })

  it('a replaced key is listed as long as requests come with it', async (_t, { store, advance }) => {
    const old = await newSender(store, 'a')
    const [hour, next] = [3_600_000, { ...keyOf(null), oldExpiresAt: store.now() + day }]
    const made = await store.replaceKey(old.keyId, next, operator)
    assert.ok(made !== null && typeof made === 'object')
    const expiring = async () =>
      (await store.listExpiringKeys(store.now() + 7 * day)).map(({ id, isReplaced }) => [id, isReplaced])
    const queue = async (sender: typeof old) =>
      assert.equal((await store.enqueue(request(store, sender))).kind, 'queued')
    advance(1000)
    assert.deepEqual(await expiring(), [], 'it has not been used since')
    await queue(old)
    assert.deepEqual(await expiring(), [[old.keyId, true]])
    advance(2 * hour)
    assert.deepEqual(await expiring(), [[old.keyId, true]], 'nobody uses the new one')
    await queue({ ...old, keyHash: next.hash, keyId: made.id })
    assert.deepEqual(await expiring(), [], 'the new one is in use, the old one is not')
    await queue(old)
    assert.deepEqual(await expiring(), [[old.keyId, true]], 'both are in use')
  })

  it('tokens are found by their hash, have names of their own, and can be revoked', async (_t, { store, advance }) => {
    const { app } = await newSender(store, 'a')
    const hash = hashToken(newToken())
    const wanted = { name: 'ci', role: 'operator', apps: [app.id], expiresAt: store.now() + day } as const
    const token = await store.createToken({ hash, ...wanted }, operator)
    assert.ok(token !== 'name_taken')
    assert.deepEqual(await store.findTokenByHash(hash), token)
    assert.equal(await store.findTokenByHash(hashToken(newToken())), null)
    assert.equal(await store.createToken({ hash: hashToken(newToken()), ...wanted }, operator), 'name_taken')
    await store.noteTokenUse(token.id)
    const revoked = await store.revokeToken(token.id, operator)
    assert.ok(revoked?.revokedAt !== null && revoked?.lastUsedAt !== null)
    assert.deepEqual(await store.revokeToken(token.id, operator), revoked)
    assert.equal(await store.revokeToken(newId('tok', 0), operator), null)
    const again = { hash: hashToken(newToken()), ...wanted, apps: null, expiresAt: store.now() + 1000 }
    const next = await store.createToken(again, operator)
    assert.ok(next !== 'name_taken' && next.apps === null)
    advance(2000)
    assert.ok((await store.createToken({ ...again, hash: hashToken(newToken()) }, operator)) !== 'name_taken')
    assert.equal((await store.listTokens()).length, 3)
    assert.deepEqual((await actions(store)).slice(2), ['token.create', 'token.revoke', 'token.create', 'token.create'])
  })

  it('lists go on page by page, whatever the filters, and miss nothing', async (_t, { store }) => {
    const busy = await newSender(store, 'busy', { keyPerMinute: 1_000_000, recipientPerHour: 1_000_000 })
    const rare = await newSender(store, 'rare')
    await store.enqueue(request(store, rare, { to: 'rare@x.org' }))
    for (const held of await claim(store)) await store.recordOutcome(held, delivered)
    const first = await store.enqueue(request(store, rare, { to: 'rare@x.org' }))
    assert.ok(first.kind === 'queued')
    await repeat(scanMax + 50, () => store.enqueue(request(store, busy)))
    const ofRare = await listEmails(store, { app: rare.app.id, limit: 9 })
    assert.deepEqual(
      ofRare.map(({ state }) => state),
      ['queued', 'delivered'],
    )
    const page = await store.listEmails({ app: rare.app.id, limit: 9 })
    assert.deepEqual([page.items.length, page.next], [2, null], 'the mail of others is not read')
    const bounded = await store.listEmails({ key: rare.keyId, limit: 9 })
    assert.ok(bounded.items.length === 0 && bounded.next !== null, 'a step reads a bounded number of rows')
    const recipient = store.nameRecipient('rare@x.org' as EmailAddress)
    assert.equal((await listEmails(store, { recipient, limit: 9 })).length, 2)
    assert.equal((await listEmails(store, { key: rare.keyId, type: 'magic_link', limit: 9 })).length, 2)
    assert.equal((await listEmails(store, { key: rare.keyId, type: 'password_reset', limit: 9 })).length, 0)
    assert.equal((await listEmails(store, { since: store.now() + 1000 * day, limit: 9 })).length, 0)
    const all = await listEmails(store, { limit: 10_000 })
    assert.equal(new Set(all.map(({ id }) => id)).size, scanMax + 52)
    const two = await store.listEmails({ limit: 2 })
    const more = await store.listEmails({ limit: 2, ...(two.next && { before: two.next }) })
    assert.deepEqual(
      [...two.items, ...more.items].map(({ id }) => id),
      all.slice(0, 4).map(({ id }) => id),
    )
    const exact = await store.listEmails({ state: 'delivered', limit: 1 })
    assert.deepEqual([exact.items.length, exact.next], [1, null])
  })

  it('an app has a bounded number of keys that work, and as many that have ended, which are removed in time', async (_t, {
    store,
    advance,
  }) => {
    const { app, keyId } = await newSender(store, 'a')
    const create = (key: ReturnType<typeof keyOf>) => store.createKey({ app: app.id, ...key }, operator)
    const ends = { expiresAt: store.now() + 3_600_000 }
    await repeat(keysMax - 1, () => create({ ...keyOf(null), ...ends }))
    assert.equal(await create(keyOf('more')), 'too_many')
    const replace = (id: KeyId) =>
      store.replaceKey(id, { ...keyOf(null), oldExpiresAt: store.now() + 60_000 }, operator)
    const next = await replace(keyId)
    assert.ok(next !== null && typeof next === 'object', 'a key takes the place of the one that it replaces')
    assert.equal(await replace(next.id), 'too_many')
    await store.revokeKey(next.id, operator)
    await store.revokeKey(keyId, operator)
    assert.equal(typeof (await create(keyOf('last'))), 'object', 'a key that has ended takes no place')

    advance(2 * 3_600_000) // all have ended but the last one
    assert.equal(typeof (await create(keyOf('later'))), 'object')
    const kept = await store.listKeys(app.id)
    assert.equal(kept.length, keysMax + 2)
    assert.equal(await store.findKey(keyId), null, 'the oldest one has ended and is forgotten')
    advance((keepDays + 1) * day)
    while ((await store.maintain()).more);
    assert.deepEqual(
      (await store.listKeys(app.id)).map(({ name }) => name),
      ['last', 'later'],
    )
  })

  it('the audit is read page by page, by app, actions, actor and time', async (_t, { store, advance }) => {
    const { app } = await newSender(store, 'a')
    for (const name of ['One', 'Two', 'Three']) await updateApp(store, app.id, { settings: { ...app.settings, name } })
    await newSender(store, 'b')
    const names = async (query: Partial<Parameters<Store['listAudit']>[0]>) => {
      const { items, next } = await store.listAudit({ limit: 2, ...query })
      return [items.map(({ action, target }) => `${action} ${target}`), next !== null]
    }
    assert.deepEqual(await names({ app: app.id, actions: ['app.update'] }), [['app.update a', 'app.update a'], true])
    assert.deepEqual(await names({ actor: 'nobody' }), [[], false])
    assert.deepEqual(await names({ actions: [] }), [[], false])
    assert.deepEqual(await names({ actions: ['app.create', 'key.revoke'] }), [['app.create b', 'app.create a'], false])
    advance(day)
    const later = store.now()
    const actor = { ...operator, name: 'Zoë 100%_Ops' }
    await store.updateApp(app.id, { status: 'disabled' }, actor)
    for (const part of ['zoë', '100%_', 'OPS'])
      assert.deepEqual(await names({ actor: part }), [['app.update a'], false], part)
    assert.deepEqual(await names({ actor: '100__' }), [[], false], 'no character stands for others')
    assert.deepEqual(await names({ since: later }), [['app.update a'], false])
    assert.deepEqual(await names({ until: later, actions: ['app.update'] }), [['app.update a', 'app.update a'], true])
    assert.deepEqual(await names({ since: later, until: later }), [[], false])
    const { next } = await store.listAudit({ limit: 2, app: app.id })
    const rest = await store.listAudit({ limit: 9, app: app.id, ...(next && { before: next }) })
    assert.deepEqual(
      rest.items.map(({ action }) => action),
      ['app.update', 'app.update', 'key.create', 'app.create'],
    )
  })

  it(`counts by day are kept for ${keepDays} days`, async (_t, { store, advance }) => {
    const sender = await newSender(store, 'a')
    await store.enqueue(request(store, sender))
    const countDays = async () => {
      while ((await store.maintain()).more);
      return (await store.readUsage(sender.app.id)).length
    }
    advance(keepDays * day)
    assert.equal(await countDays(), 2, 'the email has expired, which is counted today')
    advance(day)
    assert.equal(await countDays(), 1)
  })

  it('the counts of today are known for every app, and for some', async (_t, { store, advance }) => {
    const [one, two] = [await newSender(store, 'a'), await newSender(store, 'b')]
    for (const sender of [one, one, two]) await store.enqueue(request(store, sender))
    assert.equal((await store.readUsageToday(null)).get(one.app.id)?.accepted, 2)
    assert.equal((await store.readUsageToday(null)).get(two.app.id)?.accepted, 1)
    assert.deepEqual([...(await store.readUsageToday([two.app.id])).keys()], [two.app.id])
    assert.deepEqual([...(await store.readUsageToday([])).keys()], [])
    advance(day)
    assert.equal((await store.readUsageToday(null)).get(one.app.id), undefined)
  })
}
