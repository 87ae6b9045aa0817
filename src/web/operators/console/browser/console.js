// The console's script. Every page works without it: it keeps open pages up to date, shows local times, copies, fills the code of a
// sign-in link in, talks to passkeys, and adds keyboard shortcuts.

/** @type {{ createPolicy(name: string, rules: { createHTML(text: string): string }): { createHTML(text: string): string } } | undefined} */
const trustedTypes = Reflect.get(window, 'trustedTypes')
const policy = trustedTypes?.createPolicy('postern', { createHTML: (text) => text })

/** @param {string} text a page of the console itself */
const parse = (text) => new DOMParser().parseFromString(policy?.createHTML(text) ?? text, 'text/html')

/** @template {Element} T @param {string} selector @param {new () => T} type @returns {T[]} */
function all(selector, type) {
  /** @param {unknown} each @returns {each is T} */
  const isOfType = (each) => each instanceof type
  return [...document.querySelectorAll(selector)].filter(isOfType)
}

/** @param {string} id */
const byId = (id) => document.getElementById(id)

// Times: the local time as title, ages kept up to date.

const units = /** @type {const} */ ([
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
])

/** @param {number} ms */
function duration(ms) {
  const [size, name] = units.find(([unit]) => ms >= 2 * unit) ?? [1000, 's']
  return `${Math.max(0, Math.round(ms / size))} ${name}`
}

// The server's clock decides; this machine's may be wrong.
let drawn = { serverMs: Number(document.body.dataset.now), atMs: performance.now() }

function showTimes() {
  for (const time of all('time', HTMLTimeElement)) {
    const at = new Date(time.dateTime)
    if (time.dataset.local === undefined) {
      time.dataset.local = ''
      time.title = time.title || at.toLocaleString(undefined, { timeZoneName: 'short' })
      if (document.body.dataset.localTimes !== undefined && time.dataset.age === undefined) showLocal(time, at)
    }
  }
}

/**
 * `06:49:14Z (07:49:14 local)`, with the date where the other has one.
 * @param {HTMLTimeElement} time
 * @param {Date} at
 */
function showLocal(time, at) {
  const [date, clock] = at.toLocaleString('sv-SE').split(' ') // 2026-11-28 07:49:14
  const text = (time.textContent ?? '').includes('-') ? `${date} ${clock}` : clock
  const local = document.createElement('span')
  local.className = 'soft local'
  local.textContent = ` (${text} local)`
  time.append(local)
}

/** Each age is counted on from what the server wrote. */
function showAges() {
  const now = drawn.serverMs + performance.now() - drawn.atMs
  for (const time of all('time[data-age]', HTMLTimeElement)) {
    const ms = Date.parse(time.dateTime) - now
    const past = time.dataset.due !== undefined ? 'now' : ms > -1000 ? 'just now' : `${duration(-ms)} ago`
    const text = ms >= 1000 ? `in ${duration(ms)}` : past
    if (time.textContent !== text) time.textContent = text
  }
}

// Live: the stream says that something changed, and the page fetches itself.

const replaceEveryMs = 2000
const pollMs = 10_000
/** What the server wrote last into each region, by its id. */
const written = new Map(all('[data-region]', HTMLElement).map(({ id, innerHTML }) => [id, innerHTML]))

/** In the title, where somebody sees it who works in another tab. */
function countProblems() {
  const count = all('.attention li', HTMLElement).length
  if (count > 0) document.title = `(${count}) ${document.title}`
}

/** A region is left alone while somebody works in it, and says so. @param {Element} region */
const isBusy = (region) =>
  region.contains(document.activeElement) &&
  document.activeElement?.matches('a, button, input, select, summary') === true

/** @param {Element} region @param {boolean} paused */
function showPaused(region, paused) {
  const note = region.querySelector(':scope > .region-note')
  if (!paused) note?.remove()
  else if (note === null)
    region.prepend(Object.assign(element('p', 'Paused while you work here.'), { className: 'region-note' }))
}

/** Opens what was open before the region was drawn again. @param {Element} region @param {Set<string>} open */
function reopen(region, open) {
  for (const details of region.querySelectorAll('details'))
    if (open.has(details.querySelector('summary')?.textContent ?? '')) details.open = true
}

/** @param {Element} region */
const listOpen = (region) =>
  new Set([...region.querySelectorAll('details[open] > summary')].map(({ textContent }) => textContent ?? ''))

/** Throws the text to show if the page cannot be fetched. */
async function refresh() {
  const headers = { accept: 'text/html', 'postern-refresh': 'yes' } // it does not extend the session
  const answer = await fetch(location.href, { headers })
  if (answer.redirected) throw new Error('Signed out: reload the page')
  if (!answer.ok) throw new Error(`Not updated since ${new Date().toISOString().slice(11, 19)}Z`)
  const next = parse(await answer.text())
  drawn = { serverMs: Number(next.body.dataset.now), atMs: performance.now() }
  document.title = next.title
  countProblems()
  for (const region of all('[data-region]', HTMLElement)) {
    const fresh = next.getElementById(region.id)
    if (fresh === null || fresh.innerHTML === written.get(region.id)) continue
    const paused = isBusy(region)
    showPaused(region, paused)
    if (paused) continue
    const open = listOpen(region)
    written.set(region.id, fresh.innerHTML)
    region.replaceChildren(...fresh.childNodes)
    reopen(region, open)
  }
  addActions()
  showTimes()
}

/** Shows a bar above the page. @param {string} text empty for none */
function showStale(text) {
  const bar = byId('stale')
  if (text === '') bar?.remove()
  else if (bar !== null) bar.textContent = text
  else {
    const made = Object.assign(element('p', text), { id: 'stale', className: 'stale-bar' })
    made.setAttribute('role', 'alert')
    byId('main')?.before(made)
  }
}

function startLive() {
  const topic = document.body.dataset.live
  const light = byId('live')
  if (topic === undefined || light === null) return
  /** @type {EventSource | null} */
  let stream = null
  let isOpen = false
  let due = false
  let lastMs = 0
  let updated = Promise.resolve()
  /** @param {string} text @param {boolean} live */
  const show = (text, live) => {
    light.hidden = false
    light.classList.toggle('paused', !live)
    light.textContent = text
    const isStale = !live && text !== polled
    document.body.classList.toggle('stale', isStale)
    showStale(isStale ? `${text}. This page is not up to date.` : '')
  }
  const polled = 'Updates every 10 s'
  const showState = () => show(isOpen ? 'Live' : polled, isOpen)
  const update = () =>
    refresh().then(showState, (error) =>
      show(error instanceof TypeError ? 'Postern does not answer' : error.message, false),
    )
  const later = () => {
    if (due) return
    due = true
    const afterMs = lastMs + (topic === 'service' ? replaceEveryMs : 0) - Date.now()
    setTimeout(
      () => {
        due = false
        lastMs = Date.now()
        updated = updated.then(update) // in their order
      },
      Math.max(0, afterMs),
    )
  }
  const open = () => {
    if (stream !== null || document.hidden) return
    stream = new EventSource(`/live?topic=${encodeURIComponent(topic)}`)
    stream.addEventListener('open', () => {
      isOpen = true
      later() // the page may have changed since it was drawn
    })
    stream.addEventListener('changed', later)
    stream.addEventListener('error', () => {
      isOpen = false
      if (light.hidden) showState()
    })
  }
  const close = () => {
    stream?.close()
    stream = null
    isOpen = false
  }
  document.addEventListener('visibilitychange', () => {
    if (document.hidden)
      close() // a browser has six connections to a host
    else {
      later()
      open()
    }
  })
  // While there is no stream, the page is fetched now and then, and the stream is tried again: browsers give up after some errors.
  setInterval(() => {
    if (isOpen || document.hidden) return
    close()
    open()
    later()
  }, pollMs)
  open()
}

// Buttons that copy, and forms that show their result while they are filled in.

function addActions() {
  for (const button of all('button[data-copy]', HTMLButtonElement)) {
    if (!button.hidden) continue
    button.hidden = false
    button.addEventListener('click', async () => {
      const label = button.textContent
      await navigator.clipboard.writeText(button.dataset.copy ?? '').then(
        () => {
          button.textContent = 'Copied'
        },
        () => {
          button.textContent = 'Select it and copy'
        },
      )
      setTimeout(() => {
        button.textContent = label
      }, 2000)
    })
  }
}

document.documentElement.classList.add('script')
for (const form of all('form[data-auto]', HTMLFormElement)) {
  let timer = 0
  form.addEventListener('change', ({ target }) => {
    clearTimeout(timer)
    if (!(target instanceof HTMLInputElement) || !target.type.startsWith('date')) return form.requestSubmit()
    // A year that is typed changes with each of its digits.
    if (!target.validity.badInput && (target.value === '' || target.value >= '2000'))
      timer = window.setTimeout(() => form.requestSubmit(), 700)
  })
}

for (const form of all('form[data-preview]', HTMLFormElement)) {
  let timer = 0
  form.addEventListener('input', () => {
    clearTimeout(timer)
    timer = window.setTimeout(() => {
      const fields = /** @type {[string, string][]} */ ([...new FormData(form)])
      const search = new URLSearchParams(fields.filter(([name]) => name !== 'version'))
      for (const frame of all('.frames iframe', HTMLIFrameElement))
        frame.src = `${new URL(frame.src).pathname}?${search}`
    }, 400)
  })
}

// Beside a colour, the browser's own way to choose one.
for (const field of all('input[data-colour]', HTMLInputElement)) {
  if (field.disabled) continue
  const chooser = element('input', '')
  chooser.type = 'color'
  chooser.setAttribute('aria-label', 'Choose a colour')
  const show = () => {
    chooser.value = /^#[0-9a-f]{6}$/i.test(field.value) ? field.value : field.placeholder
  }
  chooser.addEventListener('input', () => {
    field.value = chooser.value
    field.dispatchEvent(new Event('input', { bubbles: true }))
  })
  field.addEventListener('input', show)
  show()
  const pair = Object.assign(element('span', ''), { className: 'colour' })
  field.replaceWith(pair)
  pair.append(field, chooser)
}

// Signing in.

/** Also for a link that opens where the page of the sign-in is open already. */
function readCode() {
  const code = byId('code')
  if (!(code instanceof HTMLInputElement) || !location.hash.startsWith('#psl_')) return
  code.value = location.hash.slice(1)
  history.replaceState(null, '', location.pathname + location.search) // the code leaves the history
  code.form?.querySelector('button')?.focus()
}
readCode()
window.addEventListener('hashchange', readCode)

/** @param {string} address @param {unknown} [body] */
async function send(address, body = {}) {
  const answer = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const document = await answer.json()
  if (!answer.ok) throw new Error(document.error.message)
  return document
}

/** Faults that browsers name in words of their own. @type {Record<string, string | undefined>} */
const passkeyFaults = {
  NotAllowedError: 'Cancelled or timed out. Try again.',
  InvalidStateError: 'This device already has a passkey for your account.',
  NotSupportedError: 'This browser or device does not support passkeys.',
  SecurityError: 'Passkeys need https, or an address that ends in .localhost.',
}

/** Runs a passkey ceremony, and says beside the button why it failed. @param {HTMLElement} place @param {() => Promise<{to: string}>} run */
function onPress(place, run) {
  const button = place.querySelector('button')
  const fault = place.querySelector('.fault')
  button?.addEventListener('click', async () => {
    button.disabled = true
    try {
      location.assign((await run()).to)
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error)
      const text = passkeyFaults[name] ?? message
      if (fault !== null) fault.textContent = text
    }
    button.disabled = false
  })
  // Until now, a press would have done nothing.
  if (button !== null) button.disabled = false
}

const passkey = byId('passkey')
if (passkey !== null && 'PublicKeyCredential' in window) {
  passkey.hidden = false
  onPress(passkey, async () => {
    const options = await send('/sign-in/passkey/options')
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
    const credential = /** @type {PublicKeyCredential} */ (await navigator.credentials.get({ publicKey }))
    return send(`/sign-in/passkey?to=${encodeURIComponent(passkey.dataset.to ?? '/')}`, credential.toJSON())
  })
}

const newPasskey = byId('new-passkey')
if (newPasskey !== null) {
  newPasskey.addEventListener('submit', (event) => event.preventDefault())
  onPress(newPasskey, async () => {
    const options = await send('/account/passkeys/options')
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
    const credential = /** @type {PublicKeyCredential} */ (await navigator.credentials.create({ publicKey }))
    const name = /** @type {HTMLInputElement} */ (byId('passkey-name')).value
    return send('/account/passkeys', { name, response: credential.toJSON() })
  })
}

// The address that was searched for stays in this tab: pages know its hash alone.

const pending = 'postern-search'
all('.find', HTMLFormElement)[0]?.addEventListener('submit', () => {
  const field = byId('find')
  if (field instanceof HTMLInputElement) sessionStorage.setItem(pending, field.value.trim())
})
for (const place of all('[data-searched]', HTMLElement)) {
  const name = `${pending} ${place.dataset.searched}`
  const typed = sessionStorage.getItem(pending)
  if (typed?.includes('@')) sessionStorage.setItem(name, typed)
  sessionStorage.removeItem(pending)
  place.textContent = sessionStorage.getItem(name) ?? place.textContent
}

// A menu closes when somebody clicks elsewhere, or presses Escape.

/** @param {Event} event */
function closeMenus(event) {
  for (const menu of all('details.menu[open]', HTMLDetailsElement))
    if (event.type === 'keydown' || !menu.contains(/** @type {Node} */ (event.target))) menu.open = false
}
document.addEventListener('click', closeMenus)
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') closeMenus(event)
})

// Keyboard shortcuts. They can be turned off (WCAG 2.1.4), and everything works without them.

const shortcutsOff = 'postern-shortcuts-off'
/** @type {string} */
let before = ''

function rows() {
  return all('main tbody tr, main .inbox li', HTMLElement).filter((row) => row.querySelector('a') !== null)
}

/** @param {number} by */
function choose(by) {
  const list = rows()
  const at = list.findIndex((row) => row.contains(document.activeElement))
  const next = list[Math.min(list.length - 1, Math.max(0, at + by))]
  next?.querySelector('a')?.focus()
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem(shortcutsOff) === 'yes') return
  if (event.target instanceof Element && event.target.closest('input, select, textarea, dialog')) return
  const { key } = event
  const last = before
  before = key
  if (last === 'g') {
    const link = all('a[data-go]', HTMLAnchorElement).find((each) => each.dataset.go === key)
    if (link !== undefined) location.assign(link.href)
    return
  }
  if (key === '/') {
    event.preventDefault()
    byId('find')?.focus()
  }
  if (key === 'j') choose(1)
  if (key === 'k') choose(-1)
  if (key === '?') showShortcuts()
  if (key === 'r') press('form[action$="/retry"] button, a[href*="confirm=retry"]')
  if (key === 'c') press('main [data-copy]')
}

/** @param {string} selector */
function press(selector) {
  all(selector, HTMLElement)[0]?.click()
}

const help = () => [
  ['/', 'search'],
  ...all('a[data-go]', HTMLAnchorElement).map((link) => [`g ${link.dataset.go}`, `go to ${link.textContent}`]),
  ['j, k', 'next and previous row'],
  ['r', 'retry the email, or the deferred emails'],
  ['c', 'copy the id'],
  ['?', 'this help'],
]

/** @template {keyof HTMLElementTagNameMap} T @param {T} name @param {string} text */
function element(name, text) {
  const made = document.createElement(name)
  made.textContent = text
  return made
}

function showShortcuts() {
  const dialog = document.createElement('dialog')
  dialog.setAttribute('aria-label', 'Keyboard shortcuts')
  const list = document.createElement('dl')
  for (const [keys = '', meaning = ''] of help()) list.append(element('dt', keys), element('dd', meaning))
  const off = document.createElement('input')
  off.type = 'checkbox'
  off.checked = localStorage.getItem(shortcutsOff) === 'yes'
  off.addEventListener('change', () => localStorage.setItem(shortcutsOff, off.checked ? 'yes' : 'no'))
  const label = element('label', '')
  label.append(off, ' Turn shortcuts off')
  const close = element('button', 'Close')
  close.addEventListener('click', () => dialog.close())
  dialog.addEventListener('close', () => dialog.remove())
  dialog.append(element('h2', 'Keyboard shortcuts'), list, label, close)
  document.body.append(dialog)
  dialog.showModal()
  close.focus()
}

const shortcutsButton = byId('shortcuts')
if (shortcutsButton !== null) {
  shortcutsButton.hidden = false
  shortcutsButton.addEventListener('click', showShortcuts)
}
document.addEventListener('keydown', onKey)

showTimes()
addActions()
setInterval(showAges, 1000)
startLive()
countProblems()
