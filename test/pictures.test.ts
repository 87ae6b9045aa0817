/** The pictures of the documents show today's program. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { hashesFile, hashPictures, imagesFolder } from './support/pictures.ts'

test('each picture of the documents was taken of the pages as they are', async () => {
  const kept = JSON.parse(readFileSync(hashesFile, 'utf8')) as Record<string, string>
  const pictures = readdirSync(imagesFolder).filter((name) => name.endsWith('.png'))
  assert.deepEqual(pictures.sort(), Object.keys(kept).sort())
  for (const [name, hash] of Object.entries(await hashPictures()))
    assert.equal(kept[name], hash, `${name} shows an older program: run "npm run screenshots", and look at it`)
})
