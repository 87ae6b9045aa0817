/**
 * Every page and every command that shows something, compared with what was recorded (`recorded/`). After a
 * change that is meant, `POSTERN_TEST_RECORD=yes` writes it again; read the difference like code.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { shortenId } from '../../src/domain/id.ts'
import { hashToken, newToken } from '../../src/domain/operator/management-token.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { postern } from '../support/cli.ts'
import { consolePages, newVisitor, signIn } from '../support/console.ts'
import { operator } from '../support/operator.ts'
import { readPage } from '../support/page-text.ts'
import { refusalsOf, startTestService, testSettings, validBody } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { startWorld, worldBegin } from '../support/world.ts'

const world = await startWorld({ after })

/** Names for ids and addresses, which are random. */
const names = new Map<string, string>()
function settle(text: string): string {
  const nameAgain = (found: string, kind: string): string => {
    const same = [...names.values()].filter((name) => name.startsWith(`${kind}_`)).length + 1
    const start = shortenId(found)
    const name = names.get(start) ?? `${kind}_${same}`
    names.set(start, name)
    return name
  }
  return (
    text
      .replace(/(app|key|em|pe|tok|req|rc|ses|node|au|sp|wh)_[-\w]{8,}/g, nameAgain)
      .replace(/(em_\d+)\.[0-9a-z]{10}\b/g, '$1.MAC')
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'nonce')
      .replace(new RegExp(`\\b${RegExp.escape(hostname())}\\b`, 'g'), 'this-machine')
      .replace(/(\d\d:\d\d):\d\d(\.\d+)?/g, '$1:SS')
      .replace(/just now|\d+ s ago/g, 'SS s ago')
      .replace(/[\d.]+ [KMGT]iB/g, 'SIZE') // of this disk
      .replace(/next attempt in \d+ (s|min)/g, 'next attempt in WAIT') // by chance longer or shorter
      .replace(/\bin \d+ (min|h)\b/g, 'in TIME')
      .replace(/(in )?\d{3,} d\b( ago)?/g, 'AGE') // counted from today
      .replace(/\bin \d{3,} {2}/g, 'in DAYS  ') // the same in a cell of several lines
      // Another language is no change of a page.
      .replace(/<ar> .*/g, 'LANGUAGES')
      .replace(/All \d+ languages/, 'All languages')
      .replace(/^\|.*&in=\w.*\n/gm, '')
      .replace(/^(tag|[a-z]{2,3}(-\w+)?) .* (direction|ltr|rtl) .*\n/gm, (row) =>
        /^(tag|en) /.test(row) ? row.replace(/ {2,}/g, '  ') : '',
      )
  )
}

/** The first page whole, and of the others what is their own. */
function describePage(path: string, status: number, html: string): string {
  const main = path === '/' || path === '/inbox' ? html : html.slice(html.indexOf('<main'), html.indexOf('</main>'))
  return `# ${path} ${status}\n\n${readPage(main)}\n`
}

function compare(name: string, found: string): void {
  const file = new URL(`recorded/${name}.txt`, import.meta.url)
  if (process.env.POSTERN_TEST_RECORD === 'yes') {
    mkdirSync(new URL('.', file), { recursive: true })
    writeFileSync(file, found)
  }
  assert.equal(found, readFileSync(file, 'utf8'))
}

for (const role of ['admin', 'reader'] as const)
  test(`every page says what was recorded to: ${role}${role === 'admin' ? '' : ' of one app'}`, async () => {
    const apps = role === 'admin' ? null : [world.app.id]
    const people = [await signIn(world, role, apps), await signIn(world, role, apps)] // each has a rate
    const visitor = newVisitor(world, people)
    const { store } = world
    const [known, unknown] = ['later1@example.com', 'stranger@example.com'].map((to) =>
      store.nameRecipient(to as EmailAddress),
    )
    const pages = [
      ...(await consolePages(world)),
      ...[
        `/emails?recipient=rc_${known}`,
        `/emails?recipient=rc_${unknown}`,
        '/emails?state=failed&within=60',
        '/emails?state=failed&app=shop',
        `/emails/${await world.find('returned@example.com')}`,
        `/emails/${await world.find('annoyed@example.com')}`,
      ],
      ...['/settings/sessions?end=others', '/apps/shop', '/audit?actor=ada&group=settings'],
    ]
    const parts: string[] = []
    for (const path of pages) {
      world.at(12.2)
      const answer = await visitor.get(path)
      parts.push(describePage(path, answer.status, await answer.text()))
    }
    compare(role, settle(parts.join('\n')))
  })

test('the inbox of dev mode says what was recorded, empty and full', async (t) => {
  const dev = await startTestService(t, { nowMs: worldBegin })
  await dev.store.createApp('shop', { ...testSettings, name: 'Shop' }, operator)
  const parts: string[] = []
  const read = async (path: string) => {
    const answer = await fetch(`${dev.urls.inbox}${path}`)
    parts.push(describePage(path, answer.status, await answer.text()))
  }
  await read('/inbox')
  for (const to of ['ada@example.com', 'bob@example.com']) {
    await dev.post(validBody({ to, ...(to.startsWith('b') && { type: 'password_reset' }) }, dev.store.now()))
    await eventually(async () => (await fetch(`${dev.urls.inbox}/api/inbox/latest?to=${to}`)).ok)
  }
  await dev.post(validBody({ to: 'not an address' }, dev.store.now()))
  await dev.post(validBody({ url: 'https://staging.acme.test/?token=x' }, dev.store.now()))
  await eventually(async () => (await refusalsOf(dev.store, dev.app.id)).length === 2)
  const { id } = (await (await fetch(`${dev.urls.inbox}/api/inbox/latest?to=ada@example.com`)).json()) as {
    id: string
  }
  for (const path of [
    '/inbox',
    '/inbox?q=bob',
    '/inbox?q=nobody',
    `/inbox/${id}`,
    `/inbox/${id}?view=text`,
    `/inbox/${id}?view=raw`,
  ])
    await read(path)
  compare('inbox', settle(parts.join('\n')))
})

test('every command says what was recorded', async () => {
  const token = newToken()
  const hash = hashToken(token)
  await world.store.createToken(
    { name: 'test', role: 'admin', apps: null, expiresAt: world.store.now() + 1e9, hash },
    operator,
  )
  const file = join(temporaryFolder({ after }), 'token')
  writeFileSync(file, token, { mode: 0o600 })
  const env = { POSTERN_URL: world.urls.console ?? '', POSTERN_TOKEN_FILE: file }
  const emails = await Promise.all(
    ['later1', 'nobody', 'late', 'returned', 'annoyed'].map((name) => world.find(`${name}@example.com`)),
  )
  const [refusal] = await refusalsOf(world.store, world.app.id)
  const lines = [
    ...[
      'status',
      'queue',
      'usage',
      'usage acme',
      'usage old-shop',
      'activity',
      'activity --app acme',
      'activity --json',
      'report status',
    ],
    ...['app list', 'app show acme', 'key list acme', 'token list', 'person list', 'audit', 'audit --app acme'],
    ...['email list', 'email list --app shop', 'email list --state failed', 'refusal list acme'],
    ...emails.map((id) => `email show ${id}`),
    `refusal show ${refusal?.requestId}`,
    ...[
      `key show ${world.keyId}`,
      'check-link acme https://staging.acme.test/x?token=abc',
      'languages',
      'session list',
    ],
  ]
  const parts: string[] = []
  for (const line of lines) {
    world.at(12.2)
    const { code, out, err } = await postern(env, line.split(' '))
    parts.push(`$ postern ${line} (${code})\n${out}${err}`)
  }
  compare('commands', settle(parts.join('\n')))
})
