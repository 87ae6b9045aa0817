/** Checks the settings of an app. Unsafe settings are refused when they are set, with every issue listed. */
import { type Issue, issuesOf, type Parsed, parsed, refused, valuesOf } from '../parsed.ts'
import { emailTypes } from '../request/email-kinds.ts'
import { type AllowedUrl, parseAllowedUrl, parseAppScheme } from './allowed-entry.ts'
import { checkAuthHooks } from './check-auth-hooks.ts'
import { checkDestination } from './hosted-link.ts'
import { checkOwnWords, pruneOwnWords } from './own-words.ts'
import { checkSenderDomains, parseSenderDomain } from './sender-domains.ts'
import { type AppSettings, inOrder, readSetting, settingsByPath } from './settings.ts'

/** Checks settings and brings the allow-list to its normal form. */
export function parseAppSettings(settings: AppSettings, locales: readonly string[]): Parsed<AppSettings> {
  const tooLarge = checkSize(settings)
  if (tooLarge !== null) return refused(tooLarge)
  const urls = settings.allowedUrls.map(parseAllowedUrl)
  const apps = settings.appSchemes.map(parseAppScheme)
  const domains = settings.senderDomains.map((text) => parseSenderDomain(text))
  const [allowedUrls, appSchemes, senderDomains] = [valuesOf(urls), valuesOf(apps), valuesOf(domains)]
  const schemes = new Set(appSchemes.map((entry) => entry.scheme))
  const links = { allowedUrls, appSchemes, allowLocalhost: settings.allowLocalhost, schemes }
  const unknownLocale = { field: 'locale', code: 'unknown_locale', message: `Choose one of ${locales.join(', ')}.` }
  const issues = [
    ...issuesOf([...urls, ...apps]),
    ...checkValues(settings),
    ...(locales.includes(settings.locale) ? [] : [unknownLocale]),
    ...issuesOf(domains),
    ...checkSenderDomains({ ...settings, senderDomains }),
    ...checkHostedLinks(settings, links),
    ...checkOwnWords(settings.words ?? {}, { name: settings.name, locales }),
    ...(settings.useLinkDomain && settings.linkDomain === undefined ? [linkDomainMissing] : []),
    ...checkAuthHooks(settings.authHooks ?? {}, links),
  ]
  if (issues.length > 0) return refused(...issues)
  const lists = {
    allowedUrls: texts(allowedUrls),
    appSchemes: texts(appSchemes),
    senderDomains: [...new Set(senderDomains)].toSorted(),
  }
  const { words, ...others } = settings
  const kept = pruneOwnWords(words)
  return parsed(inOrder({ ...others, ...lists, ...(kept && { words: kept }) }))
}

const linkDomainMissing: Issue = {
  field: 'useLinkDomain',
  code: 'link_domain_missing',
  message: 'Set linkDomain as well, or useLinkDomain to false.',
}

/** Bounds what each change adds to the audit, and what lists of apps have to read. */
const settingsMax = 16 * 1024

function checkSize(settings: AppSettings): Issue | null {
  const sizes = Object.entries(settings).map(([field, value]) => ({
    field,
    size: JSON.stringify(value ?? null).length,
  }))
  if (sizes.reduce((sum, { size }) => sum + size, 0) <= settingsMax) return null
  const [largest] = sizes.toSorted((a, b) => b.size - a.size)
  const message = `The settings of an app have at most ${settingsMax} characters in all; this one is the largest.`
  return { field: largest?.field ?? 'name', code: 'too_large', message }
}

const texts = (entries: readonly AllowedUrl[]) => [...new Set(entries.map((entry) => entry.text))]

const checkValues = (settings: AppSettings): Issue[] =>
  [...settingsByPath].flatMap(([path, { check }]) => {
    const value = readSetting(settings, path)
    return value === undefined || check === undefined ? [] : check(value as never, path)
  })

function checkHostedLinks(settings: AppSettings, policy: Parameters<typeof checkDestination>[1]): Issue[] {
  return Object.entries(settings.linkDestinations).flatMap(([type, destination]) => {
    const known = emailTypes.some((name) => name === type)
    const message = known ? checkDestination(destination, policy) : `The types are ${emailTypes.join(', ')}.`
    return message === null ? [] : [{ field: `linkDestinations.${type}`, code: 'destination_invalid', message }]
  })
}
