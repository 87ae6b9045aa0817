/** The page for the words of an app's own: a preview beside the original, and what is saved. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newVisitor, signIn } from '../support/console.ts'
import { startTestService } from '../support/service.ts'

const service = await startTestService({ after }, { isDev: false, consoleIsLocal: true })
const admin = newVisitor(service, await signIn(service))
const [path, address] = ['/apps/acme/words', '/apps/acme/words?type=magic_link&in=de']
const words = { subject: 'Dein {app}-Link', text: 'Schön, dass du da bist.', signOff: 'Dein Team' }
/** The fields of the form that saves: the page has another one, which chooses the language. */
async function openForm(): Promise<Record<string, string>> {
  const page = await (await admin.get(address)).text()
  const form = page.slice(page.indexOf('<form', page.indexOf('words-in')))
  const inputs = form.matchAll(/<input [^>]*name="([\w-]+)"[^>]*? value="([^"]*)"/g)
  return Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, value]))
}
const savedWords = async () => (await service.store.findApp('acme'))?.settings.words
const open = async (query: Readonly<Record<string, string>>, page = path) =>
  (await admin.get(`${page}?${new URLSearchParams({ type: 'magic_link', in: 'de', ...query })}`)).text()

test('a preview shows both subjects and both emails, and saves nothing', async () => {
  const page = await open(words)
  assert.match(page, /Dein Acme-Link/)
  assert.match(page, /Anmeldung bei Acme/)
  const [mine = '', usual = ''] = [...page.matchAll(/<iframe [^>]*src="([^"]*)"/g)].map(([, src = '']) =>
    src.replaceAll('&amp;', '&'),
  )
  assert.match(await (await admin.get(mine)).text(), /Schön, dass du da bist\.[\s\S]*Dein Team/)
  assert.doesNotMatch(await (await admin.get(usual)).text(), /Schön/)
  assert.equal(await savedWords(), undefined)
})

test('words that may not be sent are refused where they were typed, and are kept there', async () => {
  const page = await open({ ...words, text: 'Siehe acme.test' })
  assert.match(page, /Sentence above the button<\/a>: Mail clients may turn &quot;acme\.test&quot; into a link/)
  assert.match(page, /name="text"[^>]* value="Siehe acme\.test"/)
  assert.match(await open({ ...words, text: 'Siehe acme.test' }, `${path}/email`), /These words are not valid/)
  const form = await openForm()
  const refused = await admin.post(path, { ...form, ...words, text: '{inviter}' })
  assert.equal(refused.status, 400)
  assert.match(await refused.text(), /The placeholders are \{app\}/)
})

test('words are saved, shown again, and removed by leaving all fields empty', async () => {
  const form = await openForm()
  const saved = await admin.post(path, { ...form, ...words })
  assert.equal(saved.status, 303)
  assert.match(saved.headers.get('location') ?? '', /^\/apps\/acme\/words\?type=magic_link&in=de/)
  assert.deepEqual(await savedWords(), { magic_link: { de: words } })
  const again = await openForm()
  assert.deepEqual([again.subject, again.text, again.signOff], [words.subject, words.text, words.signOff])
  assert.equal((await admin.post(path, { ...again, signOff: '' })).status, 303)
  const { signOff: _, ...without } = words
  assert.deepEqual(await savedWords(), { magic_link: { de: without } })
  const last = await openForm()
  assert.equal((await admin.post(path, { ...last, subject: '', text: '', signOff: '' })).status, 303)
  assert.equal(await savedWords(), undefined)
})

test('English of the USA without words shows those of English, which it is sent with', async () => {
  const english = { subject: 'Your {app} link', text: 'Good to see you.' }
  const form = await openForm()
  assert.equal((await admin.post(path, { ...form, in: 'en', ...english })).status, 303)
  const page = await open({ in: 'en-US', subject: '', text: '', signOff: '' })
  assert.match(page, /the email is in the app’s words in English, or without them in Postern’s words/)
  assert.match(page, /Your Acme link/)
  const frames = [...page.matchAll(/<iframe [^>]*src="([^"]*)"/g)].map(([, src = '']) => src.replaceAll('&amp;', '&'))
  const [mine = '', posterns = ''] = await Promise.all(frames.map(async (src) => (await admin.get(src)).text()))
  assert.match(mine, /Good to see you/)
  assert.doesNotMatch(posterns, /Good to see you/)
  const last = await openForm()
  assert.equal((await admin.post(path, { ...last, in: 'en', subject: '', text: '', signOff: '' })).status, 303)
})

test('an operator reads them and cannot change them', async () => {
  const operator = newVisitor(service, await signIn(service, 'operator'))
  const page = await (await operator.get(address)).text()
  assert.match(page, /An admin of the whole service can change this\./)
  assert.doesNotMatch(page, /formmethod="post"/)
  const version = /name="version" value="(\d+)"/.exec(page)?.[1] ?? ''
  const sent = await operator.post(path, { type: 'magic_link', in: 'de', version, ...words })
  assert.equal(sent.status, 403)
  assert.equal(await savedWords(), undefined)
})

const versionOf = (page: string) => /name="version" value="(\d+)"/.exec(page)?.[1] ?? ''

for (const [page, fields] of [
  ['look', 'addressLine=2+Road'],
  ['words', 'subject=Hello&text=Hello'],
] as const)
  test(`${page}: a preview does not overwrite what a colleague has saved meanwhile`, async () => {
    const at = `/apps/acme/${page}`
    const version = versionOf(await (await admin.get(at)).text())
    assert.equal((await admin.post('/apps/acme/look', { addressLine: `${page} Road` })).status, 303)
    assert.equal(versionOf(await (await admin.get(`${at}?version=${version}&${fields}`)).text()), version)
    assert.equal((await admin.post(at, { version })).status, 412)
  })
