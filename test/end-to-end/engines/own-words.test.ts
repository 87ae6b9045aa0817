/** Words of an app's own: set by an admin of the whole service, previewed as they are sent, and audited. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ask, newManagementToken } from '../../support/management.ts'
import { newSender, startTestService, testSettings, validBody } from '../../support/service.ts'
import { eventually } from '../../support/wait.ts'

const service = await startTestService({ after })
const admin = await newManagementToken(service)
let serial = 0

type Email = { readonly subject: string; readonly text: string; readonly html: string }

async function newApp() {
  const slug = `own${serial++}`
  const { app, key } = await newSender(service, slug, { ...testSettings, supportContact: 'help@acme.test' })
  const call = (line: string, body?: unknown, token = admin) =>
    ask(service, line.replace('APP', slug), { token, ...(body !== undefined && { body }) })
  return {
    app,
    patch: (body: unknown, token?: string) => call('PATCH /v1/apps/APP', body, token),
    preview: async (body: object) => (await call('POST /v1/apps/APP/preview', body)).body as Email,
    audit: async () => (await call(`GET /v1/audit?app=${app.id}`)).body,
    async send(more: object): Promise<Email> {
      const to = `words${serial++}@example.com`
      const answer = await service.post(validBody({ to, ...more }), { authorization: `Bearer ${key}` })
      assert.equal(answer.status, 202, JSON.stringify(answer.body))
      return eventually(async () => {
        const found = await fetch(`${service.urls.inbox}/api/inbox/latest?to=${to}`)
        return found.ok ? ((await found.json()) as Email) : null
      })
    },
  }
}

const words = { subject: 'Your {app} link', text: 'Welcome back to {app}!', signOff: 'The {app} team' }

/** The link, and the time that it is good for, differ between a preview and an email. */
const withoutLink = (text: string) =>
  text
    .replaceAll(/https:\/\/app\.acme\.test\S*?(?=["<\s]|$)/gm, 'LINK')
    .replaceAll(/\d+ (?:minutes?|hours?)[^<]*?(?:<\/span> )?(?:<span[^>]*>)?\([^)]*\)/g, 'TIME')

test('an email is what its preview shows, in every type', async () => {
  const { patch, preview, send } = await newApp()
  const invited = { ...words, text: '{inviter} works on {organisation}.' }
  const all = {
    ...{ magic_link: { en: words }, email_verification: { en: words }, password_reset: { en: words } },
    organisation_invite: { en: invited },
  }
  const changed = await patch({ words: all })
  assert.equal(changed.status, 200, changed.text)
  assert.deepEqual(changed.body.words, all)
  const names = { organisationName: 'Example Organisation', inviterName: 'Sam Example' }
  for (const type of ['magic_link', 'email_verification', 'password_reset', 'organisation_invite'] as const) {
    const [shown, sent] = [await preview({ type }), await send({ type, ...names })]
    assert.equal(sent.subject, 'Your Acme link')
    assert.equal(shown.subject, sent.subject)
    assert.equal(withoutLink(shown.text), withoutLink(sent.text), type)
    assert.equal(withoutLink(shown.html), withoutLink(sent.html), type)
  }
  // Beside it, the same email in the words of Postern.
  const usual = await preview({ type: 'magic_link', settings: { words: null } })
  assert.equal(usual.subject, 'Sign in to Acme')
})

test('the next email has them, in their language alone, and an email after they are removed has not', async () => {
  const { patch, send } = await newApp()
  assert.equal((await send({})).subject, 'Sign in to Acme')
  assert.equal((await patch({ words: { magic_link: { de: words } } })).status, 200)
  assert.equal((await send({})).subject, 'Sign in to Acme')
  assert.equal((await send({ locale: 'de-AT' })).subject, 'Your Acme link')
  const removed = await patch({ words: { magic_link: { de: null } } })
  assert.equal(removed.body.words, undefined)
  assert.equal((await send({ locale: 'de' })).subject, 'Anmeldung bei Acme')
})

test('an admin of the whole service sets them; a fault says which text and why', async () => {
  const { app, audit, patch } = await newApp()
  const [own, one] = [await newManagementToken(service, 'admin', [app.id]), { words: { magic_link: { en: words } } }]
  const refused = await patch(one, own)
  assert.deepEqual([refused.status, refused.body.error.issues[0].code], [403, 'needs_service_admin'])
  const faults: readonly (readonly [object, string, string])[] = [
    [{ magic_link: { en: { ...words, text: 'See acme.test' } } }, 'words.magic_link.en.text', 'linkable_text'],
    [{ magic_link: { en: { ...words, subject: '{inviter}' } } }, 'words.magic_link.en.subject', 'unknown_placeholder'],
    [{ magic_link: { xx: words } }, 'words.magic_link.xx', 'unknown_locale'],
    [{ magic_link: { en: { subject: 'Only this' } } }, 'words.magic_link.en.text', 'required'],
    [{ other: { en: words } }, 'words.other', 'unknown_field'],
    [{ magic_link: { en: { ...words, footer: 'x' } } }, 'words.magic_link.en.footer', 'unknown_field'],
    [{ magic_link: { en: { ...words, signOff: 5 } } }, 'words.magic_link.en.signOff', 'malformed_value'],
    [{ magic_link: { en: { ...words, text: 'x'.repeat(20_000) } } }, 'words', 'too_large'],
  ]
  for (const [body, field, code] of faults) {
    const answer = await patch({ words: body })
    const issue = answer.body.error?.issues?.[0]
    assert.deepEqual([answer.status, issue?.field, issue?.code], [400, field, code], answer.text)
  }
  const { version } = (await patch(one)).body
  assert.equal((await patch({ words: { magic_link: { en: { signOff: null } } } })).body.version, version + 1)
  const [last] = (await audit()).items
  assert.equal(last.before.words.magic_link.en.signOff, 'The {app} team')
  assert.equal(last.after.words.magic_link.en.signOff, undefined)
})

test('an app whose settings are many keeps its bound with words in every language', async () => {
  const { patch } = await newApp()
  const all = Object.fromEntries(['en', 'de', 'fr', 'es', 'it', 'nl', 'ja', 'ar'].map((tag) => [tag, words]))
  const answer = await patch({ words: { magic_link: all, password_reset: all, email_verification: all } })
  assert.equal(answer.status, 200, answer.text)
})
