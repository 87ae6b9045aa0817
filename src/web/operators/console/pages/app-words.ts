/**
 * Own words of an app, for one type of email and one language: a form, and the email beside that in Postern's
 * words. A preview is a form by GET, as on the page of the look.
 */
import { ownWordsMax, placeholdersOf } from '../../../../domain/app/own-words.ts'
import type { EmailType } from '../../../../domain/request/email-kinds.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { lenderOf } from '../../../../templates/emails/own-words.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { languageOf, nameLanguage } from '../../../../templates/locales/locales.ts'
import { emailTypeNames, readEmailType } from '../../email-types.ts'
import { type Fields, newForm } from '../form.ts'
import { languageChoices, readLanguage } from '../language-choices.ts'
import { facts, hiddenFields, linkButton, renderFrames, section, tabs } from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { formVersion, optional, saveApp, showAgain } from './change.ts'

type Chosen = { readonly type: EmailType; readonly tag: string }

const readChosen = (app: AppResource, given: URLSearchParams): Chosen => ({
  type: readEmailType(given.get('type')),
  tag: readLanguage(given.get('in')) ?? app.locale,
})

const names = ['subject', 'text', 'signOff'] as const

function newWordsForm({ type, tag }: Chosen) {
  const field = (name: (typeof names)[number], label: string) => ({
    label,
    attributes: html`lang="${tag}" dir="auto" maxlength="${ownWordsMax[name]}" autocomplete="off"`,
    faults: [`words.${type}.${tag}.${name}`, `settings.words.${type}.${tag}.${name}`],
  })
  return newForm('words', {
    subject: field('subject', 'Subject'),
    text: field('text', 'Sentence above the button'),
    signOff: field('signOff', 'Sign-off'),
  })
}

const savedFields = ({ words }: AppResource, { type, tag }: Chosen): Fields => ({
  ...{ subject: '', text: '', signOff: '' },
  ...words?.[type]?.[tag],
})

/** The merge patch of the form: without any text, the words are removed. */
function toPatch(given: Fields, { type, tag }: Chosen): object {
  const texts = names.map((name) => [name, optional(given[name] ?? null)] as const)
  const own = texts.some(([, text]) => text !== null) ? Object.fromEntries(texts) : null
  return { words: { [type]: { [tag]: own } } }
}

export const showWords = async (visit: Visit): Promise<PageAnswer> =>
  wordsPage(visit, await findApp(visit), visit.query, null)

async function wordsPage(
  visit: Visit,
  app: AppResource,
  given: URLSearchParams,
  refused: OperationError | null,
): Promise<PageAnswer> {
  const chosen = readChosen(app, given)
  const { type, tag } = chosen
  const saved = savedFields(app, chosen)
  const { fields, error: notSaved } = given.has('subject')
    ? showAgain(saved, given, refused)
    : { fields: saved, error: refused }
  const [rendered, usual] = await Promise.all([
    preview(visit, toPatch(fields, chosen), chosen),
    preview(visit, posterns, chosen),
  ])
  const error = notSaved ?? (rendered.ok ? null : rendered.error)
  const shown = newWordsForm(chosen).show(fields, error)
  const version = formVersion(app, given, error)
  const path = `/apps/${app.slug}/words`
  const entries = emailTypeNames.map(([name, label]) => [label, `${path}?type=${name}&in=${tag}`] as const)
  const current = emailTypeNames.find(([name]) => name === type)?.[1] ?? ''
  const frame = (more: Fields) => `${path}/email?${new URLSearchParams({ ...more, type, in: tag })}`
  const body = html`${appHead(app, 'Look', visit)}
${shown.problem}
${tabs('Emails', entries, current)}
${section(`Own words in ${nameLanguage(tag)}`, renderForm(app, shown, { chosen, mayChange: visit.may('admin') && visit.seesAll, version }))}
<p class="soft">Emails with a code first, and those of auth servers that change an address or confirm a person, are always in Postern’s words.</p>
${facts([
  ['Subject, these words', subjectOf(rendered)],
  ['Subject, Postern’s words', subjectOf(usual)],
])}
<div class="frames">${renderFrames(frame(fields), [['These words', 'phone light']])}${renderFrames(frame({ posterns: 'yes' }), [['Postern’s words', 'phone light']])}</div>`
  return {
    title: `Words of ${app.name}`,
    body,
    nav: 'apps',
    ...(error && { status: toHttpStatus(error) }),
  }
}

const subjectOf = (rendered: Awaited<ReturnType<typeof preview>>): Html | null =>
  rendered.ok ? html`<bdi>${rendered.value.subject}</bdi>` : null

/** The settings with which an email is in Postern's words. */
const posterns = { words: null }

const preview = ({ call, params }: Visit, settings: object, { tag, type }: Chosen) =>
  call('app.preview', { params: { app: params.app ?? '' }, body: { type, locale: tag, settings } })

type FormParts = { readonly chosen: Chosen; readonly mayChange: boolean; readonly version: string }

function renderForm(
  app: AppResource,
  { field }: { field: (name: (typeof names)[number], options: { disabled: boolean }) => Html },
  { chosen: { tag, type }, mayChange, version }: FormParts,
): Html {
  const path = `/apps/${app.slug}/words`
  const disabled = !mayChange
  const placeholders = placeholdersOf(type).map((name, n) => html`${n === 0 ? '' : ', '}<code>{${name}}</code>`)
  const lender = lenderOf(languageOf(tag))
  const languages = languageChoices().map(
    ([value, label]) => html`<option value="${value}"${value === tag ? html` selected` : none}>${label}</option>`,
  )
  const save = mayChange
    ? html`<button>Preview</button><button class="main" formmethod="post" formaction="${path}">Save</button>`
    : html`<span class="soft">An admin of the whole service can change this.</span>`
  return html`<form method="get" action="${path}" class="filters">${hiddenFields({ type })}
<div class="field"><label for="words-in">Language</label><select id="words-in" name="in">${languages}</select></div><button>Show</button></form>
<p class="soft">Plain text; ${placeholders} ${placeholders.length === 1 ? 'becomes the app’s name' : 'become names'}. A domain, an @ or five digits in a row are refused, because mail clients turn them into links. Fill in both subject and sentence, or neither. If all three are empty, the email is in ${lender === null ? '' : html`the app’s words in ${nameLanguage(lender)}, or without them in `}Postern’s words.</p>
<form method="get" action="${path}" class="stack">${hiddenFields({ type, in: tag, version })}
${names.map((name) => field(name, { disabled }))}
<div class="actions">${save}${linkButton(`/apps/${app.slug}/look?type=${type}&in=${tag}`, 'Back to the look')}</div></form>`
}

/** An email alone, for a frame: in the words of the address, or in those of Postern. */
export async function showWordsEmail(visit: Visit): Promise<PageAnswer> {
  const chosen = readChosen(await findApp(visit), visit.query)
  const texts = Object.fromEntries(visit.query)
  const rendered = await preview(visit, visit.query.has('posterns') ? posterns : toPatch(texts, chosen), chosen)
  return {
    frame: rendered.ok
      ? rendered.value.html
      : html`<p>These words are not valid: see the errors beside the fields.</p>`.text,
  }
}

export async function saveWords(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const chosen = readChosen(app, visit.form)
  const error = await saveApp(visit, app, toPatch(Object.fromEntries(visit.form), chosen))
  if (error !== null) return wordsPage(visit, await findApp(visit), visit.form, error)
  const shown = new URLSearchParams({ type: chosen.type, in: chosen.tag })
  return { redirect: `/apps/${app.slug}/words?${shown}`, notice: 'saved' }
}
