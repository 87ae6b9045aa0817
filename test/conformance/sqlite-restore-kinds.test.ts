/** A restore on SQLite: each kind of thing that it carries over from the database that it replaces. */
import assert from 'node:assert/strict'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { simulatedTransport } from '../../src/domain/app/test-side.ts'
import { recipientPrefix } from '../../src/domain/operator/audit.ts'
import { makeSigningKey } from '../../src/store/crypto/signing-key.ts'
import { makeWebhookSecret, sealWebhookSecret } from '../../src/store/crypto/webhook-secret.ts'
import { emptiedTables, kinds, tablesAsInBackup } from '../../src/store/sqlite/files/carried/kinds.ts'
import type { Store } from '../../src/store/store.ts'
import { postern } from '../support/cli.ts'
import { operator } from '../support/operator.ts'
import { newRing } from '../support/service.ts'
import { backUp, inStore, newPlace, type Place, present, restoreJson, restoreText } from './restore-place.ts'
import { claim, day, deferred, delivered, newKey, newSender, request, type Sender, updateApp } from './subject.ts'
import { bounced, clear, complained, deliver, nameOf, report, suppress } from './suppression-subject.ts'

const newAcme = (place: Place) => inStore(place, (store) => newSender(store, 'acme'))

test('every table of the schema is compared, emptied, or as in the backup for a reason', async (t) => {
  const place = newPlace(t)
  await newAcme(place)
  const database = new DatabaseSync(place.path, { readOnly: true })
  const text = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"
  const tables = database.prepare(text).all()
  database.close()
  const declared = [
    ...kinds.flatMap((kind) => kind.tables),
    ...emptiedTables,
    ...tablesAsInBackup.map(({ table }) => table),
  ]
  assert.deepEqual(tables.map(({ name }) => name).toSorted(), [...new Set(declared)].toSorted())
  assert.equal(new Set(kinds.map(({ name }) => name)).size, kinds.length)
})

test('the test side of an app has the settings and the status that the app has after a restore', async (t) => {
  const place = newPlace(t)
  const { app } = await newAcme(place)
  const hash = hashDeliveryKey(newDeliveryKey())
  const key = { app: app.id, isTest: true, hash, name: 'ci', expiresAt: null }
  const { id: keyId } = await inStore(place, (store) => newKey(store, key))
  await backUp(place)
  const settings = { ...app.settings, allowedUrls: ['https://later.acme.test/'] }
  await inStore(place, (store) => updateApp(store, app.id, { settings }))
  await restoreJson(place)
  await inStore(place, async (store) => {
    const asked = request(store, { app, keyHash: hash, keyId }, { to: 'delivered@postern.test', version: 0 })
    const again = await store.enqueue(asked)
    assert.ok(again.kind === 'judge_again')
    assert.deepEqual(again.app.settings, { ...settings, transport: simulatedTransport })
    await updateApp(store, app.id, { status: 'disabled' })
    assert.equal(await store.deleteApp(app.id, operator), 'deleted')
  })
  await restoreJson(place)
  await inStore(place, async (store) => {
    const asked = request(store, { app, keyHash: hash, keyId }, { version: 0 })
    assert.equal((await store.enqueue(asked)).kind, 'invalid_key')
    assert.equal(await store.findKey(keyId), null)
  })
})

test('an app keeps its later settings: an allow-list entry that was removed, and the webhook address', async (t) => {
  const place = newPlace(t)
  const { app } = await newAcme(place)
  const first = {
    ...app.settings,
    allowedUrls: ['https://acme.test/', 'https://taken-over.test/'],
    allowCodes: true,
    webhookUrl: 'https://old.acme.test/hook',
  }
  await inStore(place, (store) => updateApp(store, app.id, { settings: first }))
  await backUp(place)
  const { webhookUrl: _, ...rest } = first
  const later = { ...rest, allowedUrls: ['https://acme.test/'], allowCodes: false }
  const changed = await inStore(place, (store) => updateApp(store, app.id, { settings: later }))
  const out = await restoreText(place)
  assert.match(out, /\n {2}settings of apps: acme \(allowCodes, allowedUrls, webhookUrl\)\n/)
  assert.doesNotMatch(out, /without a change since the backup:.*settings/)
  await inStore(place, async (store) => {
    const found = await store.findApp(app.id)
    assert.deepEqual(found?.settings, later)
    assert.ok(found && found.version >= changed.version)
  })
  const again = await restoreJson(place)
  assert.deepEqual(again.carried?.['settings of apps'], ['acme (allowCodes, allowedUrls, webhookUrl)'])
})

const setSecret = async (store: Store, place: Place, { app }: Sender, oldUntil: number) => {
  const sealed = sealWebhookSecret(place.ring, app.id, makeWebhookSecret())
  assert.ok(await store.setWebhookSecret({ app: app.id, sealed, oldUntil }, operator))
  return sealed
}

test('a webhook is signed with the later secret, and one that was rotated without a grace signs no more', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  await inStore(place, (store) => setSecret(store, place, sender, 0))
  await backUp(place)
  const sealed = await inStore(place, (store) => setSecret(store, place, sender, 0))
  assert.match(await restoreText(place), /\n {2}webhook secrets: acme\n/)
  const found = await inStore(place, (store) => store.findReceiver(sender.app.id))
  assert.deepEqual([found?.sealed, found?.old], [sealed, []])
})

const addSigning = async (store: Store, place: Place, { app }: Sender, selector: string) => {
  const key = await makeSigningKey(place.ring, { domain: 'acme.test', selector, algorithm: 'ed25519' })
  assert.ok(typeof (await store.addSigningKey({ ...key, app: app.id }, operator)) === 'object')
}

test('a signing key that was removed signs no more, and the one that was activated since does', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  const named = (selector: string) => ({ domain: 'acme.test', selector, app: sender.app.id })
  await inStore(place, async (store) => {
    for (const selector of ['leaked', 'before']) await addSigning(store, place, sender, selector)
    await store.activateSigningKey(named('leaked'), operator)
  })
  await backUp(place)
  await inStore(place, async (store) => {
    await addSigning(store, place, sender, 'later')
    await store.activateSigningKey(named('before'), operator)
    await store.activateSigningKey(named('later'), operator)
    await store.removeSigningKey(named('leaked'), operator)
  })
  const { carried } = await restoreJson(place)
  assert.deepEqual(carried?.['signing keys'], [
    'before._domainkey.acme.test (retired)',
    'later._domainkey.acme.test (active)',
    'leaked._domainkey.acme.test (removed)',
  ])
  const keys = await inStore(place, (store) => store.listSigningKeys(null))
  assert.deepEqual(keys.map(({ selector, state }) => `${selector} ${state}`).toSorted(), [
    'before retired',
    'later active',
  ])
})

test('the successor of a replaced key and the key of an auth server are carried over, other new keys are not', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  const app = sender.app.id
  const make = (store: Store, name: string, more: { hook?: 'supabase'; sealed?: string } = {}) =>
    newKey(store, { app, hash: hashDeliveryKey(newDeliveryKey()), name, expiresAt: null, ...more })
  const replace = async (store: Store, id: typeof sender.keyId) => {
    const hash = hashDeliveryKey(newDeliveryKey())
    const next = await store.replaceKey(id, { hash, expiresAt: null, oldExpiresAt: 1 }, operator)
    assert.ok(next !== null && typeof next === 'object')
    return next
  }
  await backUp(place)
  const { last, hook } = await inStore(place, async (store) => {
    const next = await replace(store, sender.keyId)
    await make(store, 'new')
    const gone = await make(store, 'gone hook', { hook: 'supabase', sealed: 'x' })
    await store.revokeKey(gone.id, operator)
    return {
      hook: await make(store, 'hook', { hook: 'supabase', sealed: 'c2VjcmV0' }),
      last: await replace(store, next.id),
    }
  })
  const { carried, lost } = await restoreJson(place)
  assert.deepEqual(
    new Set(carried?.['delivery keys'] as string[]),
    new Set([`${sender.keyId} (ended)`, `${last.id} (made since)`, `hook (${hook.id}, made since)`]),
  )
  assert.match(String(lost?.['delivery keys']), /^new \(key_\w+\)$/)
  await inStore(place, async (store) => {
    assert.equal((await store.findKey(last.id))?.revokedAt, null)
    assert.equal((await store.listAuthHookKeys()).find(({ id }) => id === hook.id)?.sealed, 'c2VjcmV0')
  })
})

test('a key works from the networks of both databases, also after a backup whose schema has none', async (t) => {
  const place = newPlace(t)
  const { app, keyId } = await newAcme(place)
  const wide = ['192.0.2.0/24', '2001:db8::/32']
  const make = (name: string, networks: readonly string[] | null) =>
    inStore(place, async (store) => {
      const hash = hashDeliveryKey(newDeliveryKey())
      return (await newKey(store, { app: app.id, hash, name, expiresAt: null, networks })).id
    })
  const opened = await make('opened', wide)
  const moved = await make('moved', wide)
  const kept = await make('kept', wide)
  await backUp(place)
  await inStore(place, async (store) => {
    await store.updateKey(keyId, { networks: ['192.0.2.7'] }, operator)
    await store.updateKey(opened, { networks: null }, operator)
    await store.updateKey(moved, { networks: ['192.0.2.128/25', '198.51.100.0/24'] }, operator)
  })
  const { carried, lost } = await restoreJson(place)
  assert.deepEqual(carried?.['delivery keys'], [`${keyId} (fewer networks)`, `moved (${moved}, fewer networks)`])
  assert.deepEqual(lost?.['delivery keys'], [
    `opened (${opened}, the later networks)`,
    `moved (${moved}, the later networks)`,
  ])
  const read = (id: typeof keyId) => inStore(place, async (store) => (await store.findKey(id))?.networks)
  assert.deepEqual(await read(keyId), ['192.0.2.7'])
  assert.deepEqual(await read(opened), wide)
  assert.deepEqual(await read(moved), ['192.0.2.128/25'])
  assert.deepEqual(await read(kept), wide)
  const older = new DatabaseSync(place.backup)
  older.exec('alter table delivery_key drop column networks; pragma user_version = 2')
  older.close()
  const again = await restoreJson(place)
  assert.match(String(again.lost?.['delivery keys']), /the later networks/)
})

test('a newer database keeps its settings, secrets and signing keys when it replaces an older one', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  await inStore(place, (store) => setSecret(store, place, sender, 0))
  await backUp(place)
  const settings = { ...sender.app.settings, allowedUrls: ['https://later.test/'] }
  const sealed = await inStore(place, async (store) => {
    await updateApp(store, sender.app.id, { settings })
    await addSigning(store, place, sender, 'later')
    return setSecret(store, place, sender, 0)
  })
  const moved = `${place.path}.moved`
  renameSync(place.path, moved)
  await restoreText(place) // with nothing to compare
  assert.deepEqual(present((await restoreJson(place, moved)).carried), {})
  await inStore(place, async (store) => {
    assert.deepEqual((await store.findApp(sender.app.id))?.settings, settings)
    assert.equal((await store.findReceiver(sender.app.id))?.sealed, sealed)
    assert.equal((await store.listSigningKeys(null)).length, 1)
  })
})

const recipients = ['added', 'removed', 'cleared', 'forgiven', 'renewed', 'kept'] as const

/** Complaints about an email to each, so that the suppressions have no audit entry. */
const complainAbout = async (store: Store, sender: Sender, names: readonly string[]) => {
  const emails = await deliver(
    store,
    sender,
    names.map((name) => `${name}@example.com`),
  )
  for (const email of emails) await report(store, email, complained)
  return emails
}

const suppressedUntil = async (store: Store, name: string): Promise<number[]> =>
  (await store.findSuppressions(nameOf(store, `${name}@example.com`))).map(({ until }) => until)

async function listSuppressed(store: Store): Promise<string[]> {
  const found: string[] = []
  for (const name of recipients) if ((await suppressedUntil(store, name)).length > 0) found.push(name)
  return found
}

test('suppressions made since are kept; those removed, cleared or forgiven since do not come back', async (t) => {
  const place = newPlace(t)
  const [acme, beta] = [await newAcme(place), await inStore(place, (store) => newSender(store, 'beta'))]
  const { forgiven, removed } = await inStore(place, async (store) => {
    const [email] = await complainAbout(store, acme, ['forgiven', 'renewed', 'kept'])
    await suppress(store, beta, 'cleared@example.com')
    return { forgiven: email, removed: await suppress(store, acme, 'removed@example.com') }
  })
  await backUp(place)
  const until = await inStore(place, async (store) => {
    await store.removeSuppression(removed.id, operator)
    await report(store, forgiven, { kind: 'not_spam' })
    assert.equal(await clear(store, { apps: [beta.app.id] }), 1)
    await complainAbout(store, acme, ['added'])
    await suppress(store, null, 'added@example.com')
    return (await suppress(store, acme, 'renewed@example.com', 900 * day)).until
  })
  const { carried } = await restoreJson(place)
  assert.deepEqual(carried?.suppressions, { added: 2, renewed: 1, removed: 3 })
  await inStore(place, async (store) => {
    assert.deepEqual(await listSuppressed(store), ['added', 'renewed', 'kept'])
    assert.deepEqual(await suppressedUntil(store, 'renewed'), [until])
  })
})

test('a suppression that the database never had is not taken for removed, nor one that it kept for made since', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  const early = await inStore(place, (store) => suppress(store, sender, 'cleared@example.com'))
  await backUp(place)
  await inStore(place, async (store) => {
    await store.removeSuppression(early.id, operator)
    await complainAbout(store, sender, ['kept'])
    await suppress(store, sender, 'renewed@example.com')
    const removed = await suppress(store, sender, 'removed@example.com')
    await store.removeSuppression(removed.id, operator)
  })
  const moved = `${place.path}.moved`
  renameSync(place.path, moved)
  await restoreText(place) // with nothing to compare
  const { carried } = await restoreJson(place, moved)
  assert.deepEqual(present(carried), {})
  assert.deepEqual(await inStore(place, listSuppressed), ['renewed', 'kept'])
})

test('an address that was forgotten since stays so: neither its records nor its queued mail come back', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  const to = 'ada@example.com'
  await inStore(place, async (store) => {
    await deliver(store, sender, [to, 'bob@example.com'])
    await store.enqueue(request(store, sender, { to }))
  })
  await backUp(place)
  const name = await inStore(place, async (store) => {
    const recipient = nameOf(store, to)
    const [claimed] = await claim(store)
    assert.ok(claimed)
    await store.recordOutcome(claimed, delivered)
    const target = `${recipientPrefix}${recipient}`
    await store.recordAction({ action: 'recipient.forget', app: null, target, before: null, after: {} }, operator)
    assert.equal(await store.deleteRecords(recipient), 2)
    return recipient
  })
  const asked = await restoreJson(place)
  assert.deepEqual(asked.carried?.['forgotten addresses'], { records: 1, queued: 1, refusals: 0 })
  assert.equal(asked.toSend, 0)
  await inStore(place, async (store) => {
    const all = await store.listEmails({ limit: 10 })
    assert.deepEqual([all.items.length, all.items.some(({ recipient }) => recipient === name)], [1, false])
  })
})

test('an email that has ended since is not sent again, and its record and counts are carried over', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  const queue = (store: Store, to: string) => store.enqueue(request(store, sender, { to }))
  const ids = await inStore(place, async (store) => {
    const [early] = await deliver(store, sender, ['early@example.com'])
    for (const name of ['sent', 'tried', 'waits']) await queue(store, `${name}@example.com`)
    return { early }
  })
  await backUp(place)
  const { sent, tried } = await inStore(place, async (store) => {
    const [first, second, third] = await claim(store)
    assert.ok(first && second && third)
    await store.recordOutcome(first, delivered)
    await store.recordOutcome(second, deferred(60_000))
    await report(store, ids.early, bounced)
    await deliver(store, sender, ['after@example.com'])
    await queue(store, 'lost@example.com')
    return { sent: first.emailId, tried: second.emailId }
  })
  const asked = await restoreJson(place, undefined, '--cancel-queued')
  assert.deepEqual(asked.carried?.emails, { ended: 1, attempted: 2, reported: 1, recorded: 1 })
  assert.deepEqual([asked.lost?.emails, asked.queued, asked.waiting], [{ queued: 1 }, 3, 2])
  await inStore(place, async (store) => {
    assert.equal((await store.findEmail(sent))?.state, 'delivered')
    assert.equal((await store.findEmail(tried))?.state, 'cancelled')
  })
  const { previous } = asked
  await restoreJson(place, previous)
  const out = await restoreText(place)
  assert.match(out, /Of the 3 emails queued in the backup, 3 ended since, and will not be sent again\.\n/)
  assert.doesNotMatch(out, /will send/)
  await inStore(place, async (store) => {
    const early = await store.findEmail(ids.early as never)
    assert.equal(early?.state, 'bounced')
    const { bounced: reported, cancelled } = usage(place)
    assert.deepEqual([reported, cancelled], [1, 2])
  })
})

function usage({ path }: Place): Record<string, number> {
  const database = new DatabaseSync(path)
  const rows = database.prepare('select event, sum(count) as count from usage_day group by event').all()
  database.close()
  return Object.fromEntries(rows.map(({ event, count }) => [event, Number(count)]))
}

test('an email that was tried since keeps its attempts, and only what waits is sent', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  await inStore(place, async (store) => {
    await deliver(store, sender, ['early@example.com'])
    for (const to of ['a@example.com', 'b@example.com']) await store.enqueue(request(store, sender, { to }))
  })
  await backUp(place)
  const [first, second] = await inStore(place, async (store) => {
    const claims = await claim(store, 2)
    const [one, two] = claims
    assert.ok(one && two)
    await store.recordOutcome(one, delivered)
    await store.recordOutcome(two, deferred(600_000))
    return [one, two]
  })
  const out = await restoreText(place)
  assert.match(out, /Of the 2 emails .* 1 ended since, .* The service will send 1 email queued in the backup\. /)
  await inStore(place, async (store) => {
    assert.equal((await store.summariseQueue()).depth, 1)
    assert.deepEqual(await claim(store), [], 'it is not due yet')
    const record = await store.findEmail(second.emailId)
    assert.deepEqual([record?.state, record?.attempts], ['deferred', 1])
    assert.equal((await store.findEmail(first.emailId))?.state, 'delivered')
    assert.deepEqual([usage(place).accepted, usage(place).delivered], [3, 2])
  })
})

test('a webhook that has ended since is not sent again, and one that waits since then is', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  const message = { app: sender.app.id, event: 'webhook.test', email: null, facts: {}, sealed: null } as const
  const { ended } = await inStore(place, async (store) => {
    await setSecret(store, place, sender, 0)
    const settings = { ...sender.app.settings, webhookUrl: 'https://acme.test/hook' }
    await updateApp(store, sender.app.id, { settings })
    return { ended: await store.addWebhookMessage(message) }
  })
  await backUp(place)
  const later = await inStore(place, async (store) => {
    const [claimed] = await store.claimWebhooks(sender.app.id, 1)
    assert.ok(claimed)
    await store.endWebhookTry({ ...claimed, result: '204', receiver: 'accepts', waitMs: null })
    return store.addWebhookMessage(message)
  })
  const { carried } = await restoreJson(place)
  assert.deepEqual(carried?.webhooks, { added: 1, tried: 1 })
  await inStore(place, async (store) => {
    const messages = await store.listWebhookMessages(sender.app.id, 10)
    const states = Object.fromEntries(messages.map(({ id, dueAt }) => [id, dueAt === null]))
    assert.deepEqual(states, { [ended]: true, [later]: false })
  })
})

test('if nothing can be compared, the reason, settings, secrets, signing keys and suppressions are listed', async (t) => {
  const place = newPlace(t)
  const sender = await newAcme(place)
  await inStore(place, async (store) => {
    await setSecret(store, place, sender, 0)
    await addSigning(store, place, sender, 'one')
    await store.activateSigningKey({ domain: 'acme.test', selector: 'one', app: sender.app.id }, operator)
    await suppress(store, sender, 'kept@example.com')
    await store.enqueue(request(store, sender))
  })
  await backUp(place)
  const out = await restoreText(newPlace(t, place.ring), place.backup)
  for (const line of ['settings of apps: acme', 'webhook secrets: acme', 'suppressions: 1 recipients'])
    assert.ok(out.includes(`\n  ${line}\n`), `${line} in ${out}`)
  assert.match(out, /\n {2}signing keys: one\._domainkey\.acme\.test\n/)
  assert.match(out, /because there was no database in its place\. .* suppressions made since are lost/)
  assert.match(out, /queued in the backup, including any already sent since\./)
})

/** Each makes the database that is there one that cannot be compared. */
const incomparable: Record<string, { reason: RegExp; make: (place: Place) => Promise<void> | void }> = {
  'an audit that begins after the backup': {
    reason: /the audit of the previous database begins after the backup was made/,
    make: async (place) => {
      await inStore(place, (store) => newSender(store, 'later'))
      const database = new DatabaseSync(place.path)
      database.exec('delete from audit where audit_id < (select max(audit_id) from audit)')
      database.close()
    },
  },
  'a page of a table that is overwritten': {
    reason: /the previous database is damaged/,
    make: ({ path }) => {
      const database = new DatabaseSync(path)
      const page = database.prepare("select rootpage from sqlite_schema where name = 'audit'").get()
      const size = database.prepare('pragma page_size').get()
      database.close()
      const [at, bytes] = [Number(page?.rootpage), Number(size?.page_size)]
      const content = readFileSync(path)
      content.fill(0x55, (at - 1) * bytes, at * bytes)
      writeFileSync(path, content)
    },
  },
}

for (const [what, { reason, make }] of Object.entries(incomparable))
  test(`nothing is compared with ${what}`, async (t) => {
    const place = newPlace(t)
    await newAcme(place)
    await backUp(place)
    await make(place)
    const { carried, lost, notCompared, works } = await restoreJson(place)
    assert.deepEqual([carried, lost, works.apps], [null, null, ['acme']])
    assert.match(String(notCompared), reason)
  })

test('nothing is compared with a database of another key ring, and the restore is made all the same', async (t) => {
  const [place, other] = [newPlace(t), newPlace(t, newRing())]
  await newAcme(place)
  await backUp(place)
  renameSync(place.path, `${place.path}.moved`)
  await newAcme(other)
  renameSync(other.path, place.path)
  const ran = await postern(place.env, ['restore', place.backup])
  assert.equal(ran.code, 0, ran.err)
  assert.match(ran.out, /because the (key ring cannot open the previous database|previous database is another one)/)
})
