import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderPages } from '../../../test/support/language-samples.ts'
import { languageTags } from '../locales/language-files.ts'

test('a space divides words from what follows them, but not behind a wide stop or colon', () => {
  for (const tag of languageTags) {
    const [toApp = ''] = renderPages(tag, 'Acme')
    const [, before = ''] = /<p class="soft">([^<]*)<bdi/.exec(toApp) ?? []
    const [, beforeLink = ''] = /<p class="soft">([^<]*)<a/.exec(toApp) ?? []
    for (const text of [before, beforeLink]) assert.match(text, /[：。]$|[^：。] $/, tag)
  }
})
