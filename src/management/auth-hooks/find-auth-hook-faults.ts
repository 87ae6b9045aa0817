/** Finds why Postern must refuse what connected auth servers post: pure, from the records of the store. */

import type { App } from '../../domain/app/app.ts'
import type { AuthHook } from '../../domain/auth-hooks/auth-hook.ts'
import { systemSettings } from '../../domain/auth-hooks/auth-hook-settings.ts'
import { findPostingSystem, findSystem } from '../../domain/auth-hooks/auth-hooks.ts'
import { leadsToOriginal } from '../../domain/auth-hooks/choose-link.ts'
import { counted } from '../../domain/counts.ts'
import { emailKinds } from '../../domain/request/email-kinds.ts'
import type { AuthHookKey, SealedSecret } from '../../store/auth-hook-store.ts'
import type { Finding } from '../../store/store.ts'

export type AuthHookSituation = {
  /** The base URL of hosted links; null if there are none. */
  readonly linksBaseUrl: string | null
  /** Whether the ring has the key that sealed the secret. */
  readonly opensAuthHookSecret: (secret: SealedSecret) => boolean
}

export type AuthHookFault = { readonly app: string; readonly message: string }

export function findAuthHookFaults(
  situation: AuthHookSituation,
  apps: readonly App[],
  keys: readonly AuthHookKey[],
): AuthHookFault[] {
  const byApp = Map.groupBy(keys, ({ app }) => app)
  return apps.flatMap((app) => {
    const own = byApp.get(app.id) ?? []
    if (app.status !== 'active' || own.length === 0) return []
    const names = [...new Set(own.map(({ hook }) => hook))]
    const messages = [
      ...own.flatMap((key) => describeClosed(situation, app, key)),
      ...names.flatMap((name) => describeLinks(situation, app, findSystem(name))),
    ]
    return messages.map((message) => ({ app: app.slug, message }))
  })
}

function describeClosed(
  { opensAuthHookSecret }: AuthHookSituation,
  { slug }: App,
  { hash, hook, id, sealed }: AuthHookKey,
): string[] {
  if (sealed === null || opensAuthHookSecret({ hash, id, sealed })) return []
  const title = findSystem(hook)?.title ?? hook
  return [
    `Calls of ${title} for ${slug} are refused: POSTERN_SECRET_KEYS no longer has the key that sealed the secret ${id}. Add that key again, or give ${title} a new secret.`,
  ]
}

/** An invitation alone is not enough for a fault: many apps send none. */
function describeLinks({ linksBaseUrl }: AuthHookSituation, app: App, system: AuthHook | null): string[] {
  const { settings, slug } = app
  if (system === null || (linksBaseUrl !== null && settings.hostedLinks !== 'off')) return []
  const own = systemSettings(settings.authHooks ?? {}, system.name)
  const kinds = Object.entries(system.kinds).filter(([, kind]) => kind !== 'notice' && emailKinds[kind.type].isAsked)
  const needs = kinds.some(([kind]) => {
    const messages = system.read(system.sample(kind), { slug, settings: own })
    return messages.ok && messages.value.some((message) => leadsToOriginal({ system, message, settings: own }))
  })
  if (!needs) return []
  const cure =
    linksBaseUrl === null ? 'Set POSTERN_LINKS_BASE_URL' : `Let ${slug} use hosted links (the setting hostedLinks)`
  return [
    `Emails of ${system.title} for ${slug} that carry its own link are refused, because such a link is sent as a hosted link. ${cure}, or set a page of the app for it.`,
  ]
}

/** One finding for each fault; one that says that all is well if there is none. */
export function checkAuthHooks(
  { authHooksListener, ...situation }: AuthHookSituation & { readonly authHooksListener: string | null },
  apps: readonly App[],
  keys: readonly AuthHookKey[],
): Finding[] {
  const check = 'auth servers'
  const faults = findAuthHookFaults(situation, apps, keys)
  if (faults.length > 0) return faults.map(({ message }) => ({ check, ok: false, detail: message }))
  const posting = keys.filter(({ hook }) => findPostingSystem(hook) !== null)
  const connected = new Set(keys.map(({ app }) => app)).size
  const listener =
    posting.length === 0
      ? 'over SMTP'
      : authHooksListener === null
        ? 'this process does not listen for them (POSTERN_AUTH_HOOKS_LISTEN)'
        : `the auth hooks listener is on ${authHooksListener}`
  const detail = connected === 0 ? 'none is connected' : `connected to ${counted(connected, 'app')}; ${listener}`
  return [{ check, ok: true, detail }]
}
