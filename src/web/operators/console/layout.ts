/** The frame of every page: head, navigation, search, footer. */
import { splitCharacters } from '../../../domain/characters.ts'
import { type Html, html, none } from '../../../templates/html.ts'
import { contentBegin } from './parts.ts'
import { assets } from './respond.ts'

/** The parts of the navigation, in their order; the last value is the key that leads there after `g`. */
const navigation = [
  ['overview', 'Overview', '/', 'o'],
  ['inbox', 'Inbox', '/inbox', 'i'],
  ['apps', 'Apps', '/apps', 'a'],
  ['emails', 'Emails', '/emails', 'e'],
  ['delivery', 'Delivery', '/delivery', 'd'],
  ['audit', 'Audit', '/audit', 'u'],
  ['settings', 'Settings', '/settings', 's'],
] as const
export type NavName = (typeof navigation)[number][0]

/** The mark, as in `browser/icon.svg`. */
const logo = html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7"/><path d="M10 25V13a6 6 0 0 1 12 0v12"/><circle cx="18.5" cy="18.5" r="1.7"/></svg>`

/** The properties of the process that every page shows. */
export type Shell = {
  readonly version: string
  readonly hasInbox: boolean
  /** The address of the API in examples. */
  readonly apiUrl: string
  readonly consoleUrl: string | null
  /** Null without hosted links. */
  readonly linksUrl: string | null
  readonly queueMax: number
}

type PageParts = {
  readonly title: string
  readonly body: Html
  readonly nav?: NavName
  readonly live?: string
  readonly notice: string | null
  /** The person who is signed in; null in dev mode. */
  readonly person: { readonly name: string; readonly role: string; readonly localTimes: boolean } | null
  /** Milliseconds since 1970. */
  readonly now: number
}

export function newPage(shell: Shell, parts: PageParts): Html {
  const { title, body, nav, live, notice, now } = parts
  const links = navigation
    .filter(([name]) => name !== 'inbox' || shell.hasInbox)
    .map(([name, label, address, key]) => {
      const current = name === nav ? html` aria-current="page"` : none
      return html`<li><a href="${address}"${current} data-go="${key}">${label}</a></li>`
    })
  const header = html`<header class="top">
<a class="brand" href="/">${logo} Postern</a>
<nav aria-label="Main"><ul>${links}</ul></nav>
<form class="find" method="post" action="/find" role="search">
<label class="hidden" for="find">Search for an address, an email, a request, a key or an app</label>
<input id="find" name="q" type="search" autocomplete="off" spellcheck="false" placeholder="Search" maxlength="400">
<button>Search</button></form>
${newAccountMenu(parts)}
</header>`
  const shown = notice === null ? none : html`<p class="notice" role="status">${notice}</p>`
  const content = html`${header}<main id="main" tabindex="-1">${shown}${body}</main>${newFooter(shell, parts)}`
  const begin = body.text.includes(contentBegin.text) ? 'content' : 'main'
  return newDocument({
    title,
    content,
    begin,
    now,
    localTimes: parts.person?.localTimes ?? false,
    ...(live !== undefined && { live }),
  })
}

/** A menu that opens without a script. */
const newAccountMenu = ({ person }: PageParts): Html =>
  person === null
    ? none
    : html`<details class="menu"><summary><span class="initial" aria-hidden="true">${splitCharacters(person.name)[0]?.toUpperCase() ?? ''}</span> <span class="name">${person.name}</span></summary>
<div><p class="soft">${person.name}, ${person.role}</p><a href="/account">Your account</a>
<form method="post" action="/sign-out"><button class="plain">Sign out</button></form></div></details>`

const newFooter = ({ version }: Shell, { live, person }: PageParts): Html => {
  const mode =
    person === null ? html`<span>Dev mode: nobody signs in. Anyone who can reach this port is an admin.</span>` : none
  const state = live === undefined ? none : html`<span id="live" class="live" role="status" hidden>Live</span>`
  return html`<footer>${mode}${state}<span class="end"><button class="plain" id="shortcuts" hidden>Keyboard shortcuts (?)</button>
<span>Postern ${version}</span></span></footer>`
}

/** A whole document; also for pages without navigation. */
const newDocument = ({
  title,
  content,
  begin = 'main',
  live,
  localTimes = false,
  now,
}: {
  readonly title: string
  readonly content: Html
  /** The id of the element where the content begins. */
  readonly begin?: string
  readonly live?: string
  readonly localTimes?: boolean
  readonly now?: number
}): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · Postern</title>
<link rel="stylesheet" href="${assets.style.path}">
<link rel="icon" href="${assets.icon.path}" type="image/svg+xml">
<script src="${assets.script.path}" type="module"></script>
</head>
<body${live === undefined ? none : html` data-live="${live}"`}${now === undefined ? none : html` data-now="${now}"`}${localTimes ? html` data-local-times` : none}>
<a class="skip" href="#${begin}">Skip to content</a>
${content}
</body>
</html>
`

/** A document without navigation: for signing in, and for errors before anybody has. */
export const newCard = (title: string, body: Html): Html =>
  newDocument({
    title,
    content: html`<div class="card-page"><header class="brand">${logo} Postern</header>
<main id="main" tabindex="-1"><h1>${title}</h1>
${body}</main></div>`,
  })
