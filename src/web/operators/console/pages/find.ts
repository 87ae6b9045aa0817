/** The search of every page: a whole address, an id, a key that leaked, an app, a person, or a reply. */
import { parseDeliveryKey } from '../../../../domain/app/delivery-key.ts'
import { isIdStart } from '../../../../domain/id.ts'
import { listAll } from '../../../../management/list-all.ts'
import type { Result } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import { html } from '../../../../templates/html.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { readSlugs } from './app-names.ts'
import { toAddress } from './emails.ts'

/** No address, id, key or slug is longer. */
const searchMax = 254

/** By the kind of an id, the page that shows it. */
const idPages = [
  ['em_', '/emails/'],
  ['req_', '/refusals/'],
  ['key_', '/emails?key='],
] as const

/** The search of every page. An address is sent in the body alone, and the answer leads to its hash. */
export async function find(visit: Visit): Promise<PageAnswer> {
  const text = readSearch(visit.form.get('q') ?? '')
  if (text.length > searchMax) return notFoundPage(`A search may have at most ${searchMax} characters.`)
  // Also in the Message-ID and the bounce address of an email.
  const [email] = /em_[0-9a-z]{26}/.exec(text) ?? []
  if (email !== undefined) return { redirect: `/emails/${email}` }
  if (text.includes('@')) return findRecipient(visit, text)
  if (parseDeliveryKey(text) !== null) return findPastedKey(visit, text)
  if (/^ps[a-z]_/.test(text))
    return notFoundPage(
      'This looks like a secret, and is no whole delivery key. If it is another secret that leaked, revoke it where it was made: Settings, Tokens, or Connect of its app.',
    )
  for (const [kind, address] of idPages)
    if (text.startsWith(kind)) return { redirect: `${address}${encodeURIComponent(text)}` }
  return (
    (await findApp(visit, text)) ??
    (await findPerson(visit, text)) ??
    (await findBareId(visit, text)) ??
    (await findReply(visit, text)) ??
    notFoundPage(text === '' ? searchable : `Nothing matches “${text}”. ${searchable}`)
  )
}

/** A text as people copy it: with marks that nobody sees, or with more than the address. */
function readSearch(given: string): string {
  const text = given.replace(/[\p{Cf}\p{Cc}]/gu, '').trim()
  if (!text.includes('@')) return text
  const end = text.slice(-searchMax).replace(/[\s,;.>]+$/, '')
  return (/<([^<>\s]+@[^<>\s]+)$/.exec(end)?.[1] ?? (text.length > searchMax ? text : end)).replace(/^mailto:/i, '')
}

const searchable =
  'Search for a full email address, an app, a person, an email (em_…), a request (req_…), a delivery key, or a part of a relay’s reply, such as its queue id.'

async function findApp(visit: Visit, text: string): Promise<PageAnswer | null> {
  const app = await visit.call('app.show', { params: { app: text } })
  if (app.ok) return { redirect: `/apps/${app.value.slug}` }
  const named = (await visit.get('usage.list', {})).items.filter(
    ({ name, slug }) => text !== '' && `${name}\n${slug}`.toLowerCase().includes(text.toLowerCase()),
  )
  return oneOf(
    'apps',
    named.map(({ name, slug }) => ({ name, note: slug, address: `/apps/${slug}` })),
  )
}

/** A person by a part of the name, for those who may see people. */
async function findPerson({ get, may, seesAll }: Visit, text: string): Promise<PageAnswer | null> {
  if (text === '' || !may('admin') || !seesAll) return null
  const people = await listAll(get, 'person.list', {})
  const named = people.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
  return oneOf(
    'people',
    named.map(({ id, name, role }) => ({ name, note: role, address: `/settings/people/${id}` })),
  )
}

/** An id without its kind. */
async function findBareId({ call }: Visit, text: string): Promise<PageAnswer | null> {
  const [email, request] = [`em_${text}`, `req_${text}`]
  if (!isIdStart(email)) return null
  if ((await call('email.show', { params: { email } })).ok) return { redirect: `/emails/${email}` }
  return (await call('refusal.show', { params: { request } })).ok ? { redirect: `/refusals/${request}` } : null
}

/** Steps of a list, each of `scanMax` emails, in which a reply is searched for. */
const stepsMax = 25

/** Emails by a part of a reply: the only one, or the page of the list on which they are. */
async function findReply({ call }: Visit, reply: string): Promise<PageAnswer | null> {
  let cursor: string | null = null
  for (let step = 0; step < stepsMax; step++) {
    const found: Result<Answer<'email.list'>> = await call('email.list', {
      query: { reply, ...(cursor !== null && { cursor }) },
    })
    if (!found.ok) return null
    const [email, ...others] = found.value.items
    const isOnly = others.length === 0 && found.value.next === null
    if (email !== undefined && isOnly) return { redirect: `/emails/${email.id}` }
    if (email !== undefined) return { redirect: toAddress({ reply, ...(cursor !== null && { cursor }) }) }
    cursor = found.value.next
    if (cursor === null) return null
  }
  return { redirect: toAddress({ reply, ...(cursor !== null && { cursor }) }) }
}

type Found = { readonly name: string; readonly note: string; readonly address: string }

/** The only one that was found, or a page with all of them; null if there is none. */
function oneOf(what: 'apps' | 'people', found: readonly Found[]): PageAnswer | null {
  const [first] = found
  if (first === undefined) return null
  if (found.length === 1) return { redirect: first.address }
  return {
    title: `Several ${what}`,
    nav: what === 'apps' ? 'apps' : 'settings',
    body: html`<h1>${found.length} ${what} match</h1><ul>${found.map(({ name, note, address }) => html`<li><a href="${address}">${name}</a> <span class="soft">${note}</span></li>`)}</ul>`,
  }
}

/** A key that leaked: its emails, and the page about it. */
async function findPastedKey(visit: Visit, key: string): Promise<PageAnswer> {
  const found = await visit.call('key.find', { body: { key } })
  if (!found.ok) return notFoundPage(found.error.message)
  const { app, id } = found.value
  const slug = (await readSlugs(visit)).get(app) ?? app
  return { redirect: `/apps/${slug}/keys?revoke=${id}#confirm` }
}

async function findRecipient(visit: Visit, to: string): Promise<PageAnswer> {
  const found = await visit.call('email.find', { body: { to, limit: 1 } })
  if (found.ok) return { redirect: toAddress({ recipient: found.value.recipient }) }
  if (found.error.code !== 'invalid_request') throw new PageFailed(found.error)
  return notFoundPage(
    'This is not a full email address. Only a hash of each address is kept, so emails can be found only by the full address.',
  )
}

const notFoundPage = (message: string): PageAnswer => ({
  title: 'Nothing found',
  nav: 'emails',
  status: 404,
  body: html`<h1>Nothing found</h1><p class="lead">${message}</p>`,
})
