/** The search of every page: a whole address, an id, a key that leaked, or an app. */
import { parseDeliveryKey } from '../../../../domain/app/delivery-key.ts'
import { listAll } from '../../../../management/list-all.ts'
import { html } from '../../../../templates/html.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { readSlugs } from './app-names.ts'
import { toAddress } from './emails.ts'

/** No address, id, key or slug is longer. */
const searchMax = 254

/** The search of every page. An address is sent in the body alone, and the answer leads to its hash. */
export async function find(visit: Visit): Promise<PageAnswer> {
  const given = (visit.form.get('q') ?? '').trim()
  // An address as mail programs copy it: Ada <ada@example.com>.
  const text = /<([^<>\s]+@[^<>\s]+)>$/.exec(given.slice(-searchMax))?.[1] ?? given
  if (text.length > searchMax) return notFoundPage(`A search may have at most ${searchMax} characters.`)
  if (text.includes('@')) return findRecipient(visit, text)
  if (/^em_[0-9a-z]{26}$/.test(text)) return { redirect: `/emails/${encodeURIComponent(text)}` }
  if (text.startsWith('req_')) return { redirect: `/refusals/${encodeURIComponent(text)}` }
  if (parseDeliveryKey(text) !== null) return findPastedKey(visit, text)
  if (/^ps[a-z]_/.test(text))
    return notFoundPage('This looks like a key or a secret, and is none that is whole: copy it again.')
  if (/^key_[0-9a-z]{26}$/.test(text)) return { redirect: `/emails?key=${text}` }
  if (text.startsWith('key_')) return findKeyByEnd(visit, text)
  const app = await visit.call('app.show', { params: { app: text } })
  if (app.ok) return { redirect: `/apps/${app.value.slug}` }
  const named = (await visit.get('usage.list', {})).items.filter(
    ({ name, slug }) => text !== '' && `${name}\n${slug}`.toLowerCase().includes(text.toLowerCase()),
  )
  const [first, ...others] = named
  if (first !== undefined && others.length === 0) return { redirect: `/apps/${first.slug}` }
  if (first !== undefined)
    return severalPage(
      'apps',
      named.map(({ name, slug }) => ({ name, note: slug, address: `/apps/${slug}` })),
    )
  const people = await findPeople(visit, text)
  const [person] = people
  if (person !== undefined && people.length === 1) return { redirect: personAddress(person) }
  if (person !== undefined)
    return severalPage(
      'people',
      people.map((found) => ({ name: found.name, note: found.role, address: personAddress(found) })),
    )
  const newest = await findByEnd(visit, text)
  if (newest !== null) return { redirect: `/emails/${newest}` }
  return notFoundPage(
    text === ''
      ? 'Search for a full email address, an app, a person, an email (em_…), a request (req_…) or a delivery key.'
      : `Nothing matches “${text}”. The end of an id is found only among the newest ${newestMax} emails. Search for a full email address, an app, a person, an email (em_…), a request (req_…) or a delivery key.`,
  )
}

type Found = { readonly name: string; readonly note: string; readonly address: string }

const severalPage = (what: 'apps' | 'people', found: readonly Found[]): PageAnswer => ({
  title: `Several ${what}`,
  nav: what === 'apps' ? 'apps' : 'settings',
  body: html`<h1>${found.length} ${what} match</h1><ul>${found.map(({ name, note, address }) => html`<li><a href="${address}">${name}</a> <span class="soft">${note}</span></li>`)}</ul>`,
})

const personAddress = ({ id }: { readonly id: string }): string => `/settings/people/${id}`

/** People by a part of the name, for those who may see people. */
async function findPeople({ get, may, seesAll }: Visit, text: string) {
  if (text === '' || !may('admin') || !seesAll) return []
  const people = await listAll(get, 'person.list', {})
  return people.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
}

/** Emails among which the end of an id is looked for. */
const newestMax = 200

/** Pages shorten ids to their last characters; people type them as they see them. */
async function findByEnd({ get }: Visit, text: string): Promise<string | null> {
  const end = text.replace(/^[a-z]{2,4}_…?/, '')
  if (!/^[0-9a-z]{6,26}$/.test(end)) return null
  const { items } = await get('email.list', { query: { limit: newestMax } })
  return items.find(({ id }) => id.endsWith(end))?.id ?? null
}

/** More apps are not looked through for a key. */
const searchedAppsMax = 50

/** A key by its id as pages shorten it: in the apps that somebody sees, and only if no other key ends so. */
async function findKeyByEnd(visit: Visit, text: string): Promise<PageAnswer> {
  const end = text.replace(/^key_(…|\.{3})?/, '')
  const apps = [...(await readSlugs(visit)).values()]
  const found: string[] = []
  if (/^[0-9a-z]{6,26}$/.test(end) && apps.length <= searchedAppsMax)
    for (const app of apps) {
      const keys = await listAll(visit.get, 'key.list', { params: { app } })
      found.push(...keys.map(({ id }) => id).filter((id) => id.endsWith(end)))
    }
  const [key] = found
  if (key !== undefined && found.length === 1) return { redirect: `/emails?key=${key}` }
  return notFoundPage(
    `${found.length === 0 ? 'No key' : 'More than one key'} was found by “${text}”. Enter the whole id, which the button “Copy” beside a key copies, or the key itself.`,
  )
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
