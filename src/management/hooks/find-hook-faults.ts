/** Finds why Postern must refuse what connected auth servers post: pure, from the records of the store. */

import type { App } from '../../domain/app/app.ts'
import { counted } from '../../domain/counts.ts'
import { leadsToOriginal } from '../../domain/hooks/choose-link.ts'
import { systemSettings } from '../../domain/hooks/hook-settings.ts'
import type { HookSystem } from '../../domain/hooks/hook-system.ts'
import { findSystem } from '../../domain/hooks/systems.ts'
import { emailKinds } from '../../domain/request/email-kinds.ts'
import type { HookKey, SealedSecret } from '../../store/hook-store.ts'
import type { Finding } from '../../store/store.ts'

export type HookSituation = {
  /** The base URL of hosted links; null if there are none. */
  readonly linksBaseUrl: string | null
  /** Whether the ring has the key that sealed the secret. */
  readonly opensHookSecret: (secret: SealedSecret) => boolean
}

export type HookFault = { readonly app: string; readonly message: string }

export function findHookFaults(situation: HookSituation, apps: readonly App[], keys: readonly HookKey[]): HookFault[] {
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
  { opensHookSecret }: HookSituation,
  { slug }: App,
  { hash, hook, id, sealed }: HookKey,
): string[] {
  if (sealed === null || opensHookSecret({ hash, id, sealed })) return []
  const title = findSystem(hook)?.title ?? hook
  return [
    `Calls of ${title} for ${slug} are refused: POSTERN_SECRET_KEYS no longer has the key that sealed the secret ${id}. Add that key again, or give ${title} a new secret.`,
  ]
}

/** An invitation alone is not enough for a fault: many apps send none. */
function describeLinks({ linksBaseUrl }: HookSituation, app: App, system: HookSystem | null): string[] {
  const { settings, slug } = app
  if (system === null || (linksBaseUrl !== null && settings.hostedLinks !== 'off')) return []
  const own = systemSettings(settings.hooks ?? {}, system.name)
  const kinds = Object.entries(system.kinds).filter(([, kind]) => kind !== 'notice' && emailKinds[kind.type].isAsked)
  const needs = kinds.some(([kind]) => {
    const messages = system.read(system.sample(kind))
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
export function checkHooks(
  { hooksListener, ...situation }: HookSituation & { readonly hooksListener: string | null },
  apps: readonly App[],
  keys: readonly HookKey[],
): Finding[] {
  const check = 'auth servers'
  const faults = findHookFaults(situation, apps, keys)
  if (faults.length > 0) return faults.map(({ message }) => ({ check, ok: false, detail: message }))
  const connected = new Set(keys.map(({ app }) => app)).size
  const listener =
    hooksListener === null
      ? 'this process does not listen for them (POSTERN_HOOKS_LISTEN)'
      : `the hooks listener is on ${hooksListener}`
  const detail = connected === 0 ? 'none is connected' : `connected to ${counted(connected, 'app')}; ${listener}`
  return [{ check, ok: true, detail }]
}
