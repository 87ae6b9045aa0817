import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatKeyRing,
  isProof,
  KeyMissing,
  type KeyRing,
  makeKeyedHash,
  newSecretKey,
  openSecrets,
  openText,
  parseKeyRing,
  resealAll,
  seal,
  sealText,
  unseal,
} from './key-ring.ts'

const ringOf = (...ids: string[]): KeyRing => {
  const parsed = parseKeyRing(ids.map(newSecretKey).join(','))
  assert.ok('ring' in parsed)
  return parsed.ring
}

test('a ring is read back as it was written', () => {
  const ring = ringOf('a', 'b')
  assert.deepEqual(parseKeyRing(`${formatKeyRing(ring)}\n`), { ring })
})

test('faults are named without the secret', () => {
  for (const text of ['', 'abc', 'a:short', 'a:!!!', `${newSecretKey('a')},${newSecretKey('a')}`]) {
    const parsed = parseKeyRing(text)
    assert.ok('fault' in parsed, text)
    assert.doesNotMatch(parsed.fault, /[A-Za-z0-9+/]{20}/)
  }
})

test('what was sealed opens for the same context alone', () => {
  const ring = ringOf('a')
  const sealed = seal(ring, 'email 1', 'secret text é')
  assert.equal(unseal(ring, 'email 1', sealed), 'secret text é')
  assert.throws(() => unseal(ring, 'email 2', sealed))
  assert.throws(() => unseal(ringOf('a'), 'email 1', sealed))
})

test('no nonce is used twice, also beyond one draw of them', () => {
  const ring = ringOf('a')
  const nonces = Array.from({ length: 2000 }, () => seal(ring, 'x', 'text').toString('hex', 2, 14))
  assert.equal(new Set(nonces).size, nonces.length)
})

test('any flipped bit is noticed', () => {
  const ring = ringOf('a')
  const sealed = seal(ring, 'x', 'text')
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const altered = Buffer.from(sealed)
    altered[bit >> 3] = (altered[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    assert.throws(() => unseal(ring, 'x', altered), `bit ${bit}`)
  }
})

test('after rotation the old key still opens; once it has left the ring nothing does', () => {
  const old = ringOf('old')
  const sealed = seal(old, 'x', 'text')
  const rotated: KeyRing = [ringOf('new')[0], ...old]
  assert.equal(unseal(rotated, 'x', sealed), 'text')
  assert.equal(seal(rotated, 'x', 'text').subarray(1, 4).toString(), 'new')
  assert.throws(() => unseal([rotated[0]], 'x', sealed), KeyMissing)
})

test('a key with the id of another one is refused by name, wherever it is in the ring', () => {
  const [one, two, other] = [ringOf('k1')[0], ringOf('k2')[0], ringOf('k2')[0]]
  const { changed, hashKey } = openSecrets([one, two], [])
  assert.deepEqual(openSecrets([two, one], changed).hashKey, hashKey)
  const wrong = { name: 'KeyDiffers', message: /a key "k2" that is not the key "k2" of this database/ }
  assert.throws(() => openSecrets([one, other], changed), wrong)
  assert.throws(() => openSecrets([other, one], changed), wrong)
  const hashKeyAlone = changed.filter((secret) => !isProof(secret))
  assert.throws(() => openSecrets([{ ...other, id: 'k1' }], hashKeyAlone), { name: 'KeyDiffers' })
})

test('the keys that a database was used with are known when they have left the ring', () => {
  const [one, two, three] = [ringOf('k1')[0], ringOf('k2')[0], ringOf('k3')[0]]
  const { changed } = openSecrets([one, two], [])
  assert.deepEqual(openSecrets([one, two], changed), { ...openSecrets([one], changed), missing: [] })
  assert.deepEqual(openSecrets([one], changed).missing, ['k2'])
  assert.deepEqual(
    openSecrets([one, three], changed).changed.map(({ name }) => name),
    ['key k3'],
  )
  assert.throws(() => openSecrets([two], changed), KeyMissing)
})

test('keyed hashes differ by key and by how the parts are split', () => {
  const one = makeKeyedHash(Buffer.alloc(32, 1))
  assert.equal(one('a', 'b'), one('a', 'b'))
  assert.notEqual(one('a', 'b'), makeKeyedHash(Buffer.alloc(32, 2))('a', 'b'))
  assert.notEqual(one('ab', 'c'), one('a', 'bc'))
  assert.notEqual(one('a:1', 'b'), one('a', '1:b'))
})

test('sealing anew: by the first key, once; a write that fails is no missing key', async () => {
  const [old, next, lost] = [ringOf('old'), ringOf('next'), ringOf('lost')]
  const both: KeyRing = [...next, ...old]
  const items = [old, next, lost].map((ring, n) => ({ n, sealed: sealText(ring, `item ${n}`, `text ${n}`) }))
  const written: { n: number; sealed: string }[] = []
  const context = ({ n }: { n: number }) => `item ${n}`
  const write = async ({ n }: { n: number }, sealed: string) => void written.push({ n, sealed })
  assert.deepEqual(await resealAll(both, items, { context, write }), [items[2]])
  assert.deepEqual(
    written.map(({ n, sealed }) => [n, openText(next, `item ${n}`, sealed)]),
    [[0, 'text 0']],
  )
  const full = resealAll(both, items, { context, write: () => Promise.reject(new Error('the disk is full')) })
  await assert.rejects(full, /the disk is full/)
})
