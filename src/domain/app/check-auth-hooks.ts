/** Checks the settings of an app for auth servers. */

import type { AuthHook, SystemSettings } from '../auth-hooks/auth-hook.ts'
import type { AuthHookSettings } from '../auth-hooks/auth-hook-settings.ts'
import { findSystem } from '../auth-hooks/auth-hooks.ts'
import { deceptive, isDeceptive } from '../controls.ts'
import type { Issue } from '../parsed.ts'
import type { LinkPolicy } from './allowed-url.ts'
import { checkDestination } from './hosted-link.ts'

const lifeMin = 60
const lifeMax = 30 * 86_400

type Links = LinkPolicy & { readonly schemes: ReadonlySet<string> }

export function checkAuthHooks(authHooks: AuthHookSettings, links: Links): Issue[] {
  return Object.entries(authHooks).flatMap(([name, settings]) => {
    const system = findSystem(name)
    if (system === null)
      return [issue(`authHooks.${name}`, 'unknown_system', 'Postern takes no auth hooks of this system.')]
    return checkSystem(system, settings, links)
  })
}

const issue = (field: string, code: string, message: string): Issue => ({ field, code, message })

function checkSystem(system: AuthHook, settings: SystemSettings, links: Links): Issue[] {
  const at = `authHooks.${system.name}`
  const unused = Object.keys(settings)
    .filter((name) => !system.takes.some((taken) => taken === name))
    .map((name) => issue(`${at}.${name}`, 'not_used', `${system.title} has no such setting.`))
  const { lifeSeconds = {}, organisationName, pages = {}, verifyUrl } = settings
  const places = [
    ...(verifyUrl === undefined ? [] : [[`${at}.verifyUrl`, verifyUrl] as const]),
    ...Object.entries(pages).map(([kind, page]) => [`${at}.pages.${kind}`, page] as const),
  ]
  const misplaced = places.flatMap(([field, url]) => {
    const fault = checkDestination(url, links)
    return fault === null ? [] : [issue(field, 'destination_invalid', fault)]
  })
  const wrongLives = Object.entries(lifeSeconds)
    .filter(([, life]) => !Number.isInteger(life) || life < lifeMin || life > lifeMax)
    .map(([kind]) =>
      issue(`${at}.lifeSeconds.${kind}`, 'malformed_life', `A whole number of seconds from ${lifeMin} to ${lifeMax}.`),
    )
  const named = organisationName ?? 'x'
  const wrongName =
    named.trim() === '' || named.length > 100 || isDeceptive(named) || named.includes('://')
      ? [
          issue(
            `${at}.organisationName`,
            'malformed_text',
            `1 to 100 characters, not blank, without ${deceptive}, or "://".`,
          ),
        ]
      : []
  return [...unused, ...checkKinds(system, settings), ...misplaced, ...wrongLives, ...wrongName]
}

function checkKinds({ kinds, name, title }: AuthHook, { lifeSeconds = {}, pages = {} }: SystemSettings): Issue[] {
  const known = ['default', ...Object.keys(kinds)]
  return Object.entries({ lifeSeconds, pages }).flatMap(([setting, values]) =>
    Object.keys(values)
      .filter((kind) => !known.includes(kind))
      .map((kind) =>
        issue(
          `authHooks.${name}.${setting}.${kind}`,
          'unknown_kind',
          `${title} has no such message: ${known.join(', ')}.`,
        ),
      ),
  )
}
