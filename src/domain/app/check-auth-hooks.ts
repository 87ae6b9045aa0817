/** Checks the settings of an app for auth servers. */

import type { AuthHook, SystemSettings } from '../auth-hooks/auth-hook.ts'
import type { AuthHookSettings } from '../auth-hooks/auth-hook-settings.ts'
import { findSystem } from '../auth-hooks/auth-hooks.ts'
import { parseLinkRule } from '../auth-hooks/smtp/link-rule.ts'
import { ruleTargets } from '../auth-hooks/smtp/mail-system.ts'
import { deceptive, isDeceptive } from '../controls.ts'
import type { Issue } from '../parsed.ts'
import type { LinkPolicy } from './allowed-url.ts'
import { checkDestination } from './hosted-link.ts'

const lifeMin = 60
const lifeMax = 30 * 86_400
const rulesMax = 50
const hostShape = /^(?:\*\.)?[a-z0-9.-]{1,253}(?::\d{1,5})?$/

type Links = LinkPolicy & { readonly schemes: ReadonlySet<string> }

export function checkAuthHooks(authHooks: AuthHookSettings, links: Links): Issue[] {
  return Object.entries(authHooks).flatMap(([name, settings]) => {
    const system = findSystem(name)
    if (system !== null) return checkSystem(system, settings, links)
    return [
      {
        field: `authHooks.${name}`,
        code: 'unknown_system',
        message: 'Postern takes no auth hooks of this system.',
      },
    ]
  })
}

function checkSystem({ kinds, name, takes, title }: AuthHook, settings: SystemSettings, links: Links): Issue[] {
  const issues: Issue[] = []
  const add = (setting: string, code: string, message: string) =>
    issues.push({ field: `authHooks.${name}.${setting}`, code, message })
  const { ignoredHosts = [], lifeSeconds = {}, organisationName = 'x', pages = {}, rules = {}, verifyUrl } = settings
  for (const setting of Object.keys(settings))
    if (!takes.some((taken) => taken === setting)) add(setting, 'not_used', `${title} has no such setting.`)
  const known = ['default', ...Object.keys(kinds)]
  for (const [setting, values] of Object.entries({ lifeSeconds, pages }))
    for (const kind of Object.keys(values).filter((kind) => !known.includes(kind)))
      add(`${setting}.${kind}`, 'unknown_kind', `${title} has no such message: ${known.join(', ')}.`)
  const places = Object.entries(pages).map(([kind, page]) => [`pages.${kind}`, page] as const)
  for (const [setting, url] of verifyUrl === undefined ? places : [['verifyUrl', verifyUrl] as const, ...places]) {
    const fault = checkDestination(url, links)
    if (fault !== null) add(setting, 'destination_invalid', fault)
  }
  for (const [kind, life] of Object.entries(lifeSeconds))
    if (!Number.isInteger(life) || life < lifeMin || life > lifeMax)
      add(`lifeSeconds.${kind}`, 'malformed_life', `A whole number of seconds from ${lifeMin} to ${lifeMax}.`)
  if (Object.keys(rules).length > rulesMax || ignoredHosts.length > rulesMax)
    add('rules', 'too_many', `At most ${rulesMax} rules, and as many hosts.`)
  for (const [rule, target] of Object.entries(rules)) {
    const parsedRule = parseLinkRule(rule)
    if (!parsedRule.ok) add(`rules.${rule}`, 'malformed_rule', parsedRule.issues[0]?.message ?? '')
    if (!ruleTargets.includes(target))
      add(`rules.${rule}`, 'unknown_kind', `A rule names one of ${ruleTargets.join(', ')}.`)
  }
  for (const host of ignoredHosts)
    if (!hostShape.test(host)) add('ignoredHosts', 'malformed_host', 'Hosts such as www.example.com, or *.example.com.')
  const isBlankOrLong = organisationName.trim() === '' || organisationName.length > 100
  if (isBlankOrLong || isDeceptive(organisationName) || organisationName.includes('://'))
    add('organisationName', 'malformed_text', `1 to 100 characters, not blank, without ${deceptive}, or "://".`)
  return issues
}
