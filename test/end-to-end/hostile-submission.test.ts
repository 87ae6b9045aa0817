/** Spoilt emails, judged. POSTERN_FUZZ sets how many (1,000). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { appPolicy } from '../../src/domain/app/app-policy.ts'
import { findSystem } from '../../src/domain/auth-hooks/auth-hooks.ts'
import type { AppId } from '../../src/domain/id.ts'
import { judgeMessages, readMessages } from '../../src/intake/accept-auth-hook.ts'
import { readMail } from '../../src/intake/read-mail.ts'
import { authMails } from '../support/auth-mails.ts'
import { testSettings } from '../support/service.ts'
import { spoilMails } from '../support/spoilt-mails.ts'

const messages = Number(process.env.POSTERN_FUZZ ?? 1000)

const allowed = [...new Set(authMails.map(({ link }) => new URL(link).origin))]
const policy = appPolicy({
  id: 'app_1' as AppId,
  version: 1,
  slug: 'acme',
  settings: { ...testSettings, allowedUrls: allowed },
})
const links = { baseUrl: 'https://links.acme.test', seal: (_: unknown, target: object) => JSON.stringify(target) }
const context = { policy, links, nowMs: Date.now(), traceparent: null }

/** The link of the email that Postern would send, or the code of a refusal. */
async function judge(system: string, bytes: Buffer): Promise<{ link: string } | { code: string }> {
  const mail = await readMail(bytes, 'ada@example.com')
  const found = findSystem(system)
  assert.ok(found)
  const read = mail.ok ? readMessages(found, mail.value, policy) : mail
  const [judgement, ...more] = judgeMessages(found, read, context)
  assert.ok(judgement && more.length === 0)
  const { judged, rejection } = judgement
  if (rejection !== null || !('admit' in judged.verdict)) return { code: rejection?.code ?? 'none' }
  const { hosted, url } = judged.verdict.admit.content
  const sealed = hosted ? /token=(\{.*\})/.exec(url)?.[1] : undefined
  return { link: sealed === undefined ? url : (JSON.parse(sealed) as { destination: string }).destination }
}

test('spoilt emails: no foreign link is sent, and none is a crash', async (t) => {
  const counts: Record<string, number> = {}
  for await (const { system, bytes } of spoilMails(messages, 64)) {
    const result = await judge(system, bytes)
    const code = 'code' in result ? result.code : 'sent'
    counts[code] = (counts[code] ?? 0) + 1
    if ('link' in result) {
      assert.ok(allowed.includes(new URL(result.link).origin), result.link)
      assert.match(result.link, /^https:\/\/[\x21-\x7e]+$/)
    }
  }
  t.diagnostic(JSON.stringify(counts))
  assert.ok(['sent', 'unsupported_email', 'url_not_allowed', 'invalid_body'].every((code) => (counts[code] ?? 0) > 0))
})
