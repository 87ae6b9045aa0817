/** `postern domain …`, as an operator uses it; DNS does not answer here. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newAcme, postern, posternJson, serveEnvironment } from '../support/cli.ts'
import { startNameServer } from '../support/dns-server.ts'

const env = await serveEnvironment({ after })
await newAcme(env)

type Key = { readonly selector: string; readonly state: string; readonly record: { readonly value: string } }
const show = () =>
  posternJson<{ readonly domain: string; readonly keys: readonly Key[] }>(env, ['domain', 'show', 'acme'])

test('a key is made, its record shown, and activated only once DNS has it; then it can be removed', async () => {
  const before = await postern(env, ['domain', 'show', 'acme'])
  assert.match(before.out, /domain +acme\.test\n/)
  assert.match(before.out, /Postern does not sign its mail.*"postern domain add-key acme"/)
  const added = await postern(env, ['domain', 'add-key', 'acme'])
  const [first] = (await show()).keys
  assert.ok(first)
  const { selector } = first
  assert.match(selector, /^p\d{12}r$/)
  assert.match(first.record.value, /^v=DKIM1; k=rsa; p=MIIB[\w+/]{380,}={0,2}$/)
  assert.ok(added.out.includes(`name   ${selector}._domainkey.acme.test\n`))
  assert.ok(added.out.includes(first.record.value))
  assert.match(added.out, /IN TXT \( "v=DKIM1; [^"]{240,250}" "[^"]+" \)/)
  assert.match(added.out, new RegExp(`run "postern domain activate-key acme ${selector}"`))
  const refused = await postern(env, ['domain', 'activate-key', 'acme', selector])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /was not activated\. DNS did not answer/)
  assert.equal((await show()).keys[0]?.state, 'pending')
  const unchecked = ['domain', 'activate-key', 'acme', selector, '--unchecked']
  assert.equal((await postern(env, unchecked)).out, `${selector} signs within 30 s\n`)
  await posternJson(env, ['domain', 'add-key', 'acme'])
  const [, second] = (await show()).keys
  assert.match(second?.selector ?? '', new RegExp(`^(?!${selector}$)p\\d{12}r2?$`))
  await postern(env, ['domain', 'activate-key', 'acme', second?.selector ?? '', '--unchecked'])
  assert.deepEqual(
    (await show()).keys.map(({ state }) => state),
    ['retired', 'active'],
  )
  assert.match((await postern(env, ['domain', 'show', 'acme'])).out, /retired.*\n.*active/)
  const asked = await postern(env, ['domain', 'remove-key', 'acme', second?.selector ?? ''])
  assert.match(asked.err, /nothing was removed: add --yes/)
  const yes = ['domain', 'remove-key', 'acme', second?.selector ?? '', '--yes']
  assert.equal((await postern(env, yes)).out, `removed ${second?.selector} of acme.test\n`)
  assert.equal((await postern(env, ['domain', 'remove-key', 'acme', selector])).code, 0, 'a retired one')
  assert.match((await postern(env, yes)).err, /There is no signing key ".*" of acme\.test/)
  assert.match((await postern(env, [...unchecked.slice(0, 3), 'none'])).err, /There is no signing key "none"/)
})

test('the check says for each record that DNS did not answer, and is no failure then', async () => {
  const checked = await postern(env, ['domain', 'check', 'acme'])
  assert.equal(checked.code, 0)
  assert.match(checked.out, /^\?\? +spf acme\.test: .*\n\?\? +dmarc _dmarc\.acme\.test: DNS did not answer/)
  assert.doesNotMatch(checked.out, /FAIL/)
})

test('a domain without records fails the check, and a key without its record is not activated', async (t) => {
  const { server } = await startNameServer(t, 'absence')
  const asking = { ...env, POSTERN_DNS_SERVERS: server }
  const checked = await postern(asking, ['domain', 'check', 'acme'])
  assert.equal(checked.code, 1)
  assert.match(
    checked.out,
    /^FAIL +spf acme\.test: .*no SPF record[\s\S]*publish: _dmarc\.acme\.test\. IN TXT \( "v=DMARC1; /m,
  )
  assert.doesNotMatch(checked.out, /publish: acme\.test\./, 'only the provider knows the SPF record')
  await posternJson(env, ['domain', 'add-key', 'acme'])
  const { selector = '' } = (await show()).keys.at(-1) ?? {}
  const refused = await postern(asking, ['domain', 'activate-key', 'acme', selector])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /was not activated, because mail would be refused/)
  assert.equal((await show()).keys.at(-1)?.state, 'pending')
})

test('only the right answer to the question removes a key that signs', async () => {
  await posternJson(env, ['domain', 'add-key', 'acme'])
  const { selector = '' } = (await show()).keys.at(-1) ?? {}
  await postern(env, ['domain', 'activate-key', 'acme', selector, '--unchecked'])
  const remove = ['domain', 'remove-key', 'acme', selector]
  assert.notEqual((await postern(env, remove, { answer: 'no' })).code, 0)
  assert.equal((await show()).keys.at(-1)?.state, 'active')
  assert.equal((await postern(env, remove, { answer: selector })).code, 0)
})
