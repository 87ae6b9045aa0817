/**
 * Forms of the console. A form declares its fields once: label, hint, and the names by which an operation
 * reports their faults. It then shows the faults of an operation where they belong: above the form with a
 * link to each field, in the order of the form, and at the field.
 */
import type { Issue } from '../../../domain/parsed.ts'
import type { OperationError } from '../../../management/operation/result.ts'
import { type Html, html, none } from '../../../templates/html.ts'
import type { Cell } from './parts.ts'

type Choice = readonly [value: string, label: string]

type FieldParts = {
  readonly hint?: Cell
  /** About the saved value, below the hint. */
  readonly note?: Cell
  readonly attributes?: Html
  readonly disabled?: boolean
  /** A field with choices is a menu; a function makes them when the form is shown. */
  readonly choices?: readonly Choice[] | (() => readonly Choice[])
}

export type FormField = FieldParts & {
  readonly label: string
  /** Fields and codes of an operation's error that belong to this field, besides those of its own name. */
  readonly faults?: readonly string[]
}

/** The attributes of a field for an email address. */
export const emailInput = html`inputmode="email" autocapitalize="none" spellcheck="false"`

/** The texts of a form's fields, by name. */
export type Fields = Readonly<Record<string, string>>

type ShownForm<Name extends string> = {
  /** The faults in a box. It takes the focus, because a page that answers a form begins at its top. */
  readonly problem: Html
  /** A field with its label, text and faults. */
  readonly field: (name: Name, more?: FieldParts) => Html
}

export type Form<Name extends string> = {
  readonly id: string
  readonly show: (
    texts: Fields,
    error?: OperationError | null,
    notes?: Partial<Readonly<Record<Name, Cell>>>,
  ) => ShownForm<Name>
}

/** @param id is part of the ids of the fields, so that a page can have several forms */
export function newForm<Name extends string>(id: string, fields: Readonly<Record<Name, FormField>>): Form<Name> {
  const names = Object.keys(fields) as Name[]
  return {
    id,
    show(texts, error = null, notes = {}) {
      const faults = error === null ? [] : placeFaults(error, names, fields)
      return {
        problem: error === null ? none : renderProblem(id, error, { faults, fields }),
        field(name, more = {}) {
          const own = faults.filter((fault) => fault.name === name)
          const note = notes[name]
          const parts = { ...fields[name], ...(note && { note }), ...more, value: texts[name] ?? '', faults: own }
          return renderField(`${id}-${name}`, name, parts)
        },
      }
    },
  }
}

type Fault<Name extends string> = { readonly name: Name | null; readonly message: string }

/** The faults of an error in the order of the form; those of no field come last. */
function placeFaults<Name extends string>(
  { code, message, issues = [] }: OperationError,
  names: readonly Name[],
  fields: Readonly<Record<Name, FormField>>,
): Fault<Name>[] {
  const isOf = (name: Name, field: string): boolean =>
    [name, ...(fields[name].faults ?? [])].some((own) => field === own || field.startsWith(`${own}.`))
  const find = (field: string): Name | null => names.find((name) => isOf(name, field)) ?? null
  const all: readonly Pick<Issue, 'field' | 'message'>[] =
    issues.length === 0 && find(code) !== null ? [{ field: code, message }] : issues
  const place = (name: Name | null): number => (name === null ? names.length : names.indexOf(name))
  return all
    .map((issue) => ({ name: find(issue.field), message: issue.message }))
    .toSorted((a, b) => place(a.name) - place(b.name))
}

type ProblemParts<Name extends string> = {
  readonly faults: readonly Fault<Name>[]
  readonly fields: Readonly<Record<Name, FormField>>
}

function renderProblem<Name extends string>(
  id: string,
  { code, message }: OperationError,
  { faults, fields }: ProblemParts<Name>,
): Html {
  const isOwn = code !== 'invalid_request' && !faults.some((fault) => fault.message === message)
  const text = isOwn || faults.length === 0 ? message : 'Nothing was changed. Correct this:'
  const lines = faults.map(({ name, message: why }) =>
    name === null ? html`<li>${why}</li>` : html`<li><a href="#${id}-${name}">${fields[name].label}</a>: ${why}</li>`,
  )
  return problemBox(text, lines, code)
}

/** Pages list the issues themselves, below the message. */
export const withoutIssues = (message: string): string => message.replace(/; see issues\.$/, '.')

/** An error that is not about the fields of a form. */
export const problem = (error: OperationError | null): Html =>
  error === null
    ? none
    : problemBox(
        withoutIssues(error.message),
        (error.issues ?? []).map(({ message }) => html`<li>${message}</li>`),
        error.code,
      )

/** Signing out leads to the sign-in. In another tab, because what was entered is on this page alone. */
const signInAgain = html`<form method="post" action="/sign-out" target="_blank"><button>Sign in again in a new tab</button></form>
<p>Then come back to this page and send it again. Your entries are still here.</p>`

const problemBox = (text: string, lines: readonly Html[], code: OperationError['code']): Html =>
  html`<div class="problem" role="alert" tabindex="-1" autofocus>
<p>${text}</p>
${lines.length === 0 ? none : html`<ul>${lines}</ul>`}${code === 'sign_in_again' ? signInAgain : none}</div>`

type RenderedField = Omit<FormField, 'faults'> & {
  readonly value: string
  readonly faults: readonly { readonly message: string }[]
}

function renderField(
  id: string,
  name: string,
  { label, hint, note, faults, attributes = none, choices, disabled = false, value }: RenderedField,
): Html {
  const describedBy = [hint === undefined ? '' : `${id}-hint`, faults.length === 0 ? '' : `${id}-fault`]
    .filter(Boolean)
    .join(' ')
  const common = html`id="${id}" name="${name}"${describedBy === '' ? none : html` aria-describedby="${describedBy}"`}${
    faults.length === 0 ? none : html` aria-invalid="true"`
  }${disabled ? html` disabled` : none}`
  const control =
    choices === undefined
      ? html`<input ${common} value="${value}" ${attributes}>`
      : html`<select ${common}>${(typeof choices === 'function' ? choices() : choices).map(
          ([choice, text]) =>
            html`<option value="${choice}"${choice === value ? html` selected` : none}>${text}</option>`,
        )}</select>`
  return html`<div class="field"><label for="${id}">${label}</label>
${control}
${hint === undefined ? none : html`<span class="hint" id="${id}-hint">${hint}</span>`}${note === undefined ? none : html`<span class="hint">${note}</span>`}${
  faults.length === 0
    ? none
    : html`<span class="fault" id="${id}-fault">${faults.map(({ message }) => html`${message} `)}</span>`
}</div>`
}

export const checkbox = (name: string, label: string, checked: boolean, value = 'yes'): Html => {
  const id = value === 'yes' ? name : `${name}-${value}`
  return html`<div class="field check">
<input type="checkbox" id="${id}" name="${name}" value="${value}"${checked ? html` checked` : none}><label for="${id}">${label}</label>
</div>`
}

/** The texts of a form that was sent. */
export const readTexts = (form: URLSearchParams): Fields => Object.fromEntries(form)
