/**
 * The commands of the README and of the pages under "Start", as a new user pastes them: in a clean folder, in
 * order, with the usual ports. They need a registry of npm packages, and a browser.
 */
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { DevInbox } from '@postern/client/testing'
import { openBrowser } from '../support/browser.ts'
import { commandsOf } from '../support/document.ts'
import { lacking } from '../support/installed.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd, type Scope, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const isTaken = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
const taken = (await Promise.all([3000, 4020, 4021, 4022, 4023, 4025].map(isTaken))).includes(true)
const skip =
  (!existsSync(join(root, '.git')) && 'skipped: needs a checkout') ||
  (taken && 'skipped: another program uses one of the ports 3000 and 4020 to 4025')
const longTimeout = 400_000

/** Until the end of the file. */
const scope: Scope = { after }
/** The folder that contains the checkout, named `postern`. */
const home = temporaryFolder(scope)
const checkout = join(home, 'postern')
/** The sample apps need Node 24; the checkout brings a newer one. */
const newerNode = { PATH: `${join(checkout, 'node_modules/.bin')}:${process.env.PATH}` }
/** Without what is meant for this test alone. */
const plain = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(POSTERN_|NODE_TEST_CONTEXT$|NODE_COMPILE_CACHE$)/.test(name)),
)

const quoted = (text: string, pairs: Readonly<Record<string, string>>): string =>
  Object.entries(pairs).reduce((changed, [from, to]) => {
    assert.ok(changed.includes(from), `the commands have ${from}`)
    return changed.replaceAll(from, to)
  }, text)

/** Runs commands as somebody pastes them, and returns what they print. */
async function paste(commands: string, folder: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  try {
    const options = { cwd: folder, env: { ...plain, ...env }, maxBuffer: 1e8 }
    return (await promisify(execFile)('bash', ['-ec', commands], options)).stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${commands}\n${stdout}\n${stderr}`)
  }
}

/** Runs a command that stays in the foreground, until the end of the scope, once it has printed the text. */
async function keep(scope: Scope, command: string, folder: string, ready: RegExp, env: NodeJS.ProcessEnv = {}) {
  // A group of its own, so that Ctrl-C reaches the programs behind npm.
  const child = spawn('bash', ['-c', command], { cwd: folder, env: { ...plain, ...env }, detached: true })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += chunk))
  const exited = once(child, 'exit')
  let isEnded = false
  const stop = async () => {
    if (!isEnded && child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGINT')
    isEnded = true
    await exited
  }
  atEnd(scope, stop)
  await eventually(() => {
    if (child.exitCode !== null) throw new Error(`${command} ended: ${printed}`)
    return ready.test(printed)
  }, 60_000)
  return { stop, printed: () => printed }
}

const lastOf = (block = ''): string => block.trimEnd().split('\n').at(-1) ?? ''
const withoutLast = (block = ''): string => block.trimEnd().split('\n').slice(0, -1).join('\n')

before(async () => {
  if (skip) return
  mkdirSync(checkout)
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of listed
    .toString()
    .split('\0')
    .filter((name) => name !== '' && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(checkout, file)), { recursive: true })
    cpSync(join(root, file), join(checkout, file))
  }
  await paste(
    'git init --quiet . && git add --all && git -c user.name=x -c user.email=x@x commit --quiet --message x',
    checkout,
  )
})

/** Dev mode, which several pages begin with. */
let dev: Awaited<ReturnType<typeof keep>>
const inbox = () => new DevInbox('http://127.0.0.1:4022')
test('README, "Try it": npm ci, npm start, and the printed line', { skip, timeout: longTimeout }, async () => {
  const [block] = commandsOf('README.md', 'Try it')
  assert.equal(lastOf(block), 'npm start')
  await paste(withoutLast(block), checkout)
  dev = await keep(scope, lastOf(block), checkout, /^curl .*$/m)
  const line = /^curl .*$/m.exec(dev.printed())?.[0] ?? ''
  assert.equal((await paste(`${line} -sS`, checkout)).trim(), '{"ok":true}')
})

test('README, "Use it from your app": a request, and the inbox that waits for its email', { skip }, async () => {
  const [block = ''] = commandsOf('README.md', 'Use it from your app')
  const printed = await paste(block, checkout)
  assert.match(printed, /^\{"ok":true\}/)
  assert.match(printed, /"to":"ada@example\.com"/)
})

for (const [page, tools] of [
  ['python', ['python3']],
  ['go', ['go']],
] as const)
  test(`docs/${page}.md: the sample sends an email`, {
    skip: skip || lacking(...tools),
    timeout: longTimeout,
  }, async () => {
    const text = readFileSync(join(root, `docs/${page}.md`), 'utf8')
    const [, block = ''] = /^```sh\n([\s\S]*?)^```$/m.exec(text) ?? []
    assert.match(await paste(block, checkout), /^em_\w{26}\n$/)
    // With a link that is not allowed, it says so and fails.
    const sample = { python: 'python/postern.py', go: 'go/main.go' }[page]
    const copy = join(checkout, 'examples', sample)
    const whole = readFileSync(copy, 'utf8')
    writeFileSync(copy, quoted(whole, { 'https://app.example.com': 'https://elsewhere.example.com' }))
    await assert.rejects(paste(block, checkout), /url_not_allowed/)
    writeFileSync(copy, whole)
  })

type SignIn = (
  page: Awaited<ReturnType<Awaited<ReturnType<typeof openBrowser>>['newPage']>>,
  to: string,
) => Promise<void>

/** Follows a page that makes a Next.js app, from its section "Make the app" on, and signs in. */
async function followNext(t: TestContext, page: string, ask: SignIn): Promise<void> {
  const folder = join(home, page)
  mkdirSync(folder, { recursive: true })
  // The page has the checkout beside the app.
  const [make = ''] = commandsOf(page, '2. Create the app')
  const steps = ['3. Add four files', '3. Sign in', '4. Sign in']
  const text = readFileSync(join(root, page), 'utf8')
  const blocks = steps.filter((step) => text.includes(`\n## ${step}\n`)).flatMap((step) => commandsOf(page, step))
  await paste(quoted(make, { '../postern': checkout }), folder, newerNode)
  const app = join(folder, 'my-app')
  for (const block of blocks.slice(0, -1)) await paste(quoted(block, { '../postern': checkout }), app, newerNode)
  await paste('npx tsc --noEmit', app, newerNode)
  const server = await keep(t, lastOf(blocks.at(-1)), app, /Ready/, newerNode)
  const browser = await openBrowser(t)
  const shown = await browser.newPage()
  const to = `ada+${page.replace(/\W/g, '')}@example.com`
  const received = inbox()
  await shown.goto('http://localhost:3000')
  await ask(shown, to)
  const email = await received.next(to, 'magic_link')
  await shown.goto(email.url)
  assert.match(String(await shown.textContent('h1')), /Sign in to/)
  await shown.getByRole('button', { name: 'Sign in' }).click()
  await shown.getByText(`Hello, ${to}`).waitFor()
  await server.stop()
}

const needsBrowser = skip || lacking('chromium')

test('docs/nextjs.md: from an empty folder to a signed-in user', { skip: needsBrowser, timeout: longTimeout }, (t) =>
  followNext(t, 'docs/nextjs.md', async (page, to) => {
    await page.getByLabel('Email').fill(to)
    await page.getByRole('button', { name: 'Email me a link' }).click()
    await page.getByText('Look into your inbox.').waitFor()
  }),
)

test('docs/authjs.md: from an empty folder to a signed-in user', { skip: needsBrowser, timeout: longTimeout }, (t) =>
  followNext(t, 'docs/authjs.md', async (page, to) => {
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.locator('input[type=email]').fill(to)
    await page.getByRole('button').click()
    await page.getByText('Check your email').waitFor()
  }),
)

test('README, "Run it": from the settings to an email in the mailbox; no file of the checkout changes', {
  skip,
  timeout: longTimeout,
}, async (t) => {
  const mode = statSync(join(checkout, 'bin/postern.js')).mode
  await dev.stop()
  const relay = await startSmtpServer(t)
  const [settings = '', start = '', use = ''] = commandsOf('README.md', 'Run it')
  const usual = 'smtp://user:password@smtp.example.com:587'
  await paste(quoted(settings, { [usual]: `smtp://127.0.0.1:${relay.port}` }), checkout)
  assert.equal(statSync(join(checkout, 'postern.env')).mode & 0o777, 0o600)
  await paste(withoutLast(start), checkout)
  await keep(t, lastOf(start), checkout, /is ready/)
  await paste(quoted(use, { 'YOUR@SENDER': 'auth@acme.org', 'YOUR@ADDRESS': 'ada@acme.org' }), checkout)
  const { from, to } = await relay.first()
  assert.deepEqual([from, to], ['auth@acme.org', ['ada@acme.org']])
  assert.equal(await paste('git status --porcelain', checkout), '')
  assert.equal(statSync(join(checkout, 'bin/postern.js')).mode, mode)
})
