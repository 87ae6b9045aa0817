/** Where a message of an auth server leads. */
import { type Parsed, parsed, refuser } from '../parsed.ts'
import type { AuthHook, AuthHookMessage, SystemSettings } from './auth-hook.ts'

export type HookedMessage = {
  readonly system: AuthHook
  readonly message: AuthHookMessage
  readonly settings: SystemSettings
}

type ChosenLink = { readonly url: string; readonly isOriginal: boolean }

/** A page of the app for this kind, else the system's own link, else the page for every kind. */
export function chooseLink({ system, message, settings }: HookedMessage): Parsed<ChosenLink> {
  if (message.link !== undefined) return parsed({ url: message.link, isOriginal: false })
  const { pages = {} } = settings
  const token = message.token ?? message.code
  const toPage = (page: string): Parsed<ChosenLink> =>
    parsed({ url: `${page}?token=${encodeURIComponent(token ?? '')}`, isOriginal: false })
  // Without a token, a page has nothing to go on with.
  const own = token !== undefined && Object.hasOwn(pages, message.kind) ? pages[message.kind] : undefined
  if (own !== undefined) return toPage(own)
  const original = message.original ?? system.original?.(message, settings) ?? null
  if (original !== null) return parsed({ url: original, isOriginal: true })
  if (pages.default !== undefined && token !== undefined) return toPage(pages.default)
  const text = 'This message needs a page of the app to open, and none is set.'
  return refuser(`authHooks.${system.name}.pages`)('page_missing', text)
}

/** Whether a message leads to a link of the auth server's own, which needs a hosted link. */
export function leadsToOriginal(hooked: HookedMessage): boolean {
  const link = chooseLink(hooked)
  return link.ok && link.value.isOriginal
}
