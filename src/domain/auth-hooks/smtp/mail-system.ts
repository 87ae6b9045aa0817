/**
 * A system that sends its emails over SMTP. The link of a message counts, and the rule that matches it says
 * which email it is; the text is discarded.
 */
import { type Issue, type Parsed, parsed, refused } from '../../parsed.ts'
import { type EmailType, emailTypes } from '../../request/email-kinds.ts'
import { quoteForShell } from '../../shell.ts'
import type { AuthHook, AuthHookKind, AuthHookMessage, SetUpPlace, Step } from '../auth-hook.ts'
import { present } from '../fields.ts'
import { linksMax } from './find-links.ts'
import { type LinkRule, matchesRule, parseLinkRule, type Route, readRoute } from './link-rule.ts'

/** All that counts of a message. */
export type SubmittedMail = {
  readonly to: string
  /** Each once. */
  readonly links: readonly string[]
  /** Null for a message that has none. */
  readonly messageId: string | null
  readonly locale?: string
  readonly organisationName?: string
  readonly inviterName?: string
}

export type MailSystem = {
  readonly name: string
  readonly title: string
  readonly follows: string
  /** The scheme and host of its samples. */
  readonly origin: string
  /** Each email, indented; `mail-systems.ts` has the form. */
  readonly emails: string
  /** Rules for links of the same host that another rule would match. */
  readonly ignoredRules?: readonly string[]
  /** Hosts of logos and help pages in its messages. */
  readonly ignoredHosts?: readonly string[]
  /** Where the configuration goes. */
  readonly where: string
  readonly configuration: string
}

type MailKind = Exclude<AuthHookKind, 'notice'> & { readonly rules: readonly string[]; readonly sample: string }

const [hour, day] = [3600, 86_400]
const units: Readonly<Record<string, number>> = { m: 60, h: hour, d: day }
const sampleHex = '5b1d6e0a7c3f9b2d4e6a8c0f1b3d5e7a'

/** A line of its own begins an email; one that is indented more has further rules of it. */
export function readEmails({ emails, origin }: MailSystem): Readonly<Record<string, MailKind>> {
  const lines = emails
    .replaceAll(/\n {8}/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', type, life = '', sample = '', ...rules] = line.trim().split(' ')
      const lifeSeconds = Number.parseInt(life, 10) * (units[life.slice(-1)] ?? 0)
      return [name, { type: type as EmailType, lifeSeconds, rules, sample: `${origin}${fillSample(sample)}` }]
    }),
  )
}

function fillSample(path: string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const newJwt = (typ = 'JWT') => `${encode({ alg: 'HS512' })}.${encode({ typ })}.c2FtcGxl`
  return path.replace(/JWT(?:\(([\w-]+)\))?/, (_, typ?: string) => newJwt(typ)).replace('HEX', sampleHex)
}

/** For links that a rule of the app matches. */
const usualLifeSeconds: Readonly<Record<EmailType, number>> = {
  magic_link: hour / 4,
  email_verification: day,
  password_reset: hour,
  organisation_invite: 7 * day,
}
const kindsByType = Object.fromEntries(
  emailTypes.map((type) => [type, { type, lifeSeconds: usualLifeSeconds[type] }]),
) satisfies Record<string, AuthHookKind>

/** A rule of an app names one of these. */
export const ruleTargets: readonly string[] = [...emailTypes, 'ignored']

/** A rule, and the kind of the emails that it finds. */
type Ruled = { readonly text: string; readonly kind: string; readonly rule: LinkRule }

/** Without those that are malformed; they are refused where they are set. */
const readRules = (rules: readonly (readonly [text: string, kind: string])[]): Ruled[] =>
  rules.flatMap(([text, kind]) => {
    const rule = parseLinkRule(text)
    return rule.ok ? [{ text, kind, rule: rule.value }] : []
  })

export function newMailSystem(system: MailSystem): AuthHook {
  const { follows, ignoredHosts = [], ignoredRules = [], name, title } = system
  const kinds = readEmails(system)
  const ownRules = readRules([
    ...ignoredRules.map((text) => [text, 'ignored'] as const),
    ...Object.entries(kinds).flatMap(([kind, { rules }]) => rules.map((text) => [text, kind] as const)),
  ])
  return {
    ...{ name, title, follows },
    auth: { kind: 'login' },
    kinds: { ...kindsByType, ...kinds },
    takes: ['rules', 'ignoredHosts', 'lifeSeconds', 'organisationName'],
    read: (body, { settings, slug }) =>
      readMail(body as SubmittedMail, {
        ...{ name, slug },
        rules: [...readRules(Object.entries(settings.rules ?? {})), ...ownRules],
        ignoredHosts: [...alwaysIgnored, ...ignoredHosts, ...(settings.ignoredHosts ?? [])],
      }),
    samples: Object.keys(kinds),
    sample: (kind) =>
      ({ to: 'someone@example.com', links: [kinds[kind]?.sample ?? ''], messageId: null }) satisfies SubmittedMail,
    setUp: (place) => listSteps(system, kinds, place),
  }
}

function listSteps(system: MailSystem, kinds: Readonly<Record<string, MailKind>>, place: SetUpPlace): Step[] {
  const { name, origin, title, where } = system
  const update = `postern app update ${place.slug}`
  const [[kind, { lifeSeconds }] = ['', { lifeSeconds: 0 }]] = Object.entries(kinds)
  const isPlain = Object.values(kinds).every(({ sample }) => isPlainLink(sample))
  const needs = isPlain ? '' : ' They are sent as hosted links, so the service needs POSTERN_LINKS_BASE_URL.'
  return [
    { text: where, block: configure(system, place) },
    { text: 'Ask for a password reset to try it. A test email without a link is refused.' },
    {
      place: 'postern',
      text: `Allow the address of its links, such as this one.${needs}`,
      block: `${update} --allow-url ${origin}`,
    },
    kind === ''
      ? {
          place: 'postern',
          text: 'Add a rule for each link that the program sends, such as this one.',
          block: `${update} --auth-hook-rule '${name}:/reset/*=password_reset'`,
        }
      : {
          place: 'postern',
          text: `If you changed how long links of ${title} are valid, set that here too. This is its default.`,
          block: `${update} --auth-hook-life ${name}.${kind}=${lifeSeconds}`,
        },
  ]
}

/** The configuration for the way in which the listener is reached: `?tls=none`, STARTTLS, or implicit TLS. */
function configure({ configuration }: MailSystem, { from, secret, slug, url }: SetUpPlace): string {
  const { hostname, port, protocol, search } = new URL(url)
  const isImplicit = protocol === 'smtps:'
  const way = isImplicit ? 2 : search === '?tls=none' ? 0 : 1
  const usualPort = isImplicit ? '465' : '587'
  const values = { host: hostname, port: port || usualPort, user: slug, password: secret ?? 'psh_…', from }
  const chosen = configuration.replace(
    /\{([^{}|]*)\|([^{}|]*)\|([^{}|]*)\}/g,
    (_, ...ways: string[]) => ways[way] ?? '',
  )
  return Object.entries(values).reduce((text, [key, value]) => text.replaceAll(`{${key}}`, value), chosen)
}

/** Names of documents that HTML itself mentions. */
const alwaysIgnored = ['www.w3.org', 'schema.org']

type Reading = {
  readonly name: string
  readonly slug: string
  readonly rules: readonly Ruled[]
  readonly ignoredHosts: readonly string[]
}

const isPlainLink = (link: string): boolean => /^[^?#]*\?token=[^&;#]+$/.test(link)

function readMail(mail: SubmittedMail, reading: Reading): Parsed<readonly AuthHookMessage[]> {
  const { locale, inviterName, messageId, organisationName, to } = mail
  const chosen = chooseLink(mail.links, reading)
  if (!chosen.ok) return chosen
  const { kind, link, rule, url } = chosen.value
  const place = isPlainLink(link) ? { link } : { original: link, rule }
  const expiry = readExpiry(url)
  const names = present({ locale, inviterName, organisationName })
  const once = messageId === null ? null : JSON.stringify([messageId, to, link])
  return parsed([{ kind, to, once, ...place, ...names, ...(expiry !== null && { notAfter: expiry }) }])
}

type Chosen = { readonly kind: string; readonly rule: string; readonly link: string; readonly url: URL }

/** The one link that a rule matches. Others on its host say nothing, and no others may be there. */
function chooseLink(links: readonly string[], { ignoredHosts, name, rules, slug }: Reading): Parsed<Chosen> {
  const refuse = (code: string, message: string) => refused({ field: 'message', code, message } satisfies Issue)
  if (links.length > linksMax) return refuse('too_many_links', `The message has more than ${linksMax} links.`)
  const found: Chosen[] = []
  const others: (URL | null)[] = []
  for (const link of links) {
    const url = URL.parse(link)
    const route = url === null ? null : readRoute(url)
    const rule = route === null ? undefined : rules.find((each) => matchesRule(each.rule, route))
    if (rule === undefined || url === null || rule.kind === 'ignored') others.push(url)
    else found.push({ kind: rule.kind, rule: rule.text, link, url })
  }
  const [one, ...more] = found
  if (more.length > 0)
    return refuse(
      'several_links',
      `The message has ${found.length} different links that match rules. It may have only one.`,
    )
  const other = others.find((url) => url === null || (!isIgnored(url, ignoredHosts) && url.origin !== one?.url.origin))
  if (one !== undefined && other === undefined) return parsed(one)
  if (other === undefined) return refuse('no_link', `The message has no link that matches a rule. ${sendElsewhere}`)
  if (other === null) return refuse('other_link', 'The message has a link that is not a URL.')
  const update = `postern app update ${slug}`
  if (one === undefined) {
    const path = showPath(readRoute(other))
    const rule = quoteForShell(`${name}:${path}=TYPE`)
    return refuse(
      'unknown_kind',
      `No rule matches the link to ${nameHost(other)} with the path ${path}. ${sendElsewhere} If its link signs somebody in: ${update} --auth-hook-rule ${rule} (TYPE: ${emailTypes.join(', ')})`,
    )
  }
  return refuse(
    'other_link',
    `The message also has a link to ${nameHost(other)}. If that is a logo or a help page: ${update} --auth-hook-ignore ${quoteForShell(`${name}=${nameHost(other)}`)}`,
  )
}

const sendElsewhere = 'Postern sends authentication emails only: send others through another server.'

const isIgnored = ({ host }: URL, ignoredHosts: readonly string[]): boolean =>
  ignoredHosts.some((ignored) => ignored === host || (ignored.startsWith('*.') && host.endsWith(ignored.slice(1))))

/** The host of an app link may be its secret. */
const nameHost = ({ host, protocol }: URL): string => (/^https?:$/.test(protocol) ? host : protocol)

/** A path as a rule that matches it: what could be a token is a star. */
const showPath = ({ segments }: Route): string =>
  `/${segments
    .slice(0, 8)
    .map((segment) => (/\d|[^\w.#!-]/.test(segment) || segment.length > 12 ? '*' : segment))
    .join('/')}`

/** When a JWT in the link expires, in milliseconds since 1970; null if there is none. */
function readExpiry(url: URL): number | null {
  for (const { claims } of readRoute(url).parameters.values()) {
    const expiry = claims?.exp
    const expiryMs = typeof expiry === 'number' ? Math.floor(expiry * 1000) : Number.NaN
    if (Number.isSafeInteger(expiryMs)) return expiryMs
  }
  return null
}
