import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameBrowser } from './browser-name.ts'

test('a browser is named as people know it, and a program as it names itself', () => {
  const mozilla = 'Mozilla/5.0'
  const like = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'
  for (const [agent, name] of [
    [`${mozilla} (Windows NT 10.0; Win64; x64) ${like} Edg/142.0.0.0`, 'Edge on Windows'],
    [`${mozilla} (X11; Linux x86_64) ${like}`, 'Chrome on Linux'],
    [`${mozilla} (Linux; Android 15; Pixel 9) ${like}`, 'Chrome on Android'],
    [`${mozilla} (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1`, 'Safari on iPhone'],
    ['Firefox/145.0', 'Firefox'],
    [`curl/8.1 ${'x'.repeat(100)}`, `curl/8.1 ${'x'.repeat(31)}`],
    ['', 'unknown'],
  ] as const)
    assert.equal(nameBrowser(agent), name)
})
