/**
 * The message on the wire (RFC 5322, MIME): headers, a text part and an HTML part. Every attempt has the same
 * `Message-ID`, so mail systems can recognize duplicates. Parts are 7bit if their text allows it, else
 * quoted-printable.
 */
import * as mime from 'nodemailer/lib/mime-funcs'
import type { App } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import type { Reference } from '../../domain/delivery/reference.ts'
import { minuteMs } from '../../domain/duration.ts'
import { LruMap } from '../../domain/lru-map.ts'
import { type CodePlace, codePlace, type Purpose } from '../../domain/request/email-content.ts'
import { type EmailType, emailKinds } from '../../domain/request/email-kinds.ts'
import type { Claim } from '../../store/store.ts'
import { makeLinkTexts, type Rendered, renderEmail, renderWith } from '../../templates/emails/render-email.ts'
import { encodeLine, type GapTexts, gaps, isPlain, type Line, MessageForm } from './message-form.ts'

export type MessageInput = {
  readonly claim: Pick<Claim, 'type' | 'acceptedAt' | 'ageMs' | 'expiresAt' | 'content'>
  readonly reference: Reference
  readonly app: Pick<App, 'id' | 'version' | 'settings' | 'slug'>
  /** The time that the link has left at this attempt. */
  readonly lifeLeftMs: number
}

/** The forms used last are kept, and at most 1,000 in all, of 11 to 17 KiB each. */
const formsKept = 500

/**
 * Composes messages, most of them from forms: one for each app, version of its settings, type, purpose, kind
 * of link, place of a code and language.
 */
export class MessageComposer {
  /** A name that was met once has no form yet. */
  readonly #forms = new LruMap<string, MessageForm | 'met once'>(formsKept)

  compose(input: MessageInput): Buffer {
    const { claim } = input
    // Names appear in the subject, and in words that depend on them.
    if (emailKinds[claim.type].hasNames) return composeMessage(input)
    return this.#findForm(input)?.fill(makeGapTexts(input)) ?? composeMessage(input)
  }

  /** A form costs several messages, so it is made when its second one comes. */
  #findForm({ claim, app }: MessageInput): MessageForm | null {
    const hosted = claim.content.hosted === true
    const code = codePlace(claim.content)
    const { locale = app.settings.locale, purpose } = claim.content
    const name = `${app.id} ${app.version} ${claim.type} ${purpose ?? ''} ${hosted} ${code} ${locale}`
    const known = this.#forms.get(name)
    if (known instanceof MessageForm) return known
    const form = known === undefined ? null : composeForm(app, { type: claim.type, purpose, hosted, code, locale })
    this.#forms.set(name, form ?? 'met once')
    return form
  }
}

type FormKind = {
  readonly type: EmailType
  readonly purpose: Purpose | undefined
  readonly hosted: boolean
  readonly code: CodePlace
  readonly locale: string
}

function composeForm(
  { settings, slug }: MessageInput['app'],
  { type, purpose, hosted, code, locale }: FormKind,
): MessageForm {
  const texts = { ...gaps, host: hosted ? gaps.host : null }
  const rendered = renderWith(texts, {
    app: settings,
    type,
    code,
    content: { locale, ...(purpose && { purpose }) },
  })
  return new MessageForm(composeLines({ ...gaps, settings, slug, type, rendered }))
}

function makeGapTexts({ claim, reference, app, lifeLeftMs }: MessageInput): GapTexts {
  const { content } = claim
  const { host, ...texts } = makeLinkTexts({ ...claim, app: app.settings, lifeLeftMs })
  return {
    ...texts,
    host: host ?? '',
    reference,
    to: content.to,
    date: formatDate(chooseDateMs(claim)),
    expires: formatDate(claim.expiresAt),
    messageIdDomain: content.messageIdDomain,
  }
}

/** RFC 5322 §3.3. A fraction of a second is left out. */
export const formatDate = (ms: number): string => new Date(ms).toUTCString().replace('GMT', '+0000')

/** Spam filters suspect a Date that is hours old: SpamAssassin from three hours on (DATE_IN_PAST_03_06). */
const lateMs = 30 * minuteMs

/** The time of acceptance; after a long wait that of the attempt. */
const chooseDateMs = (claim: Pick<Claim, 'acceptedAt' | 'ageMs'>): number =>
  claim.ageMs > lateMs ? attemptedAt(claim) : claim.acceptedAt

export const attemptedAt = ({ acceptedAt, ageMs }: Pick<Claim, 'acceptedAt' | 'ageMs'>): number => acceptedAt + ageMs

/** Composes one message without a form. */
export function composeMessage(input: MessageInput): Buffer {
  const { claim, app, lifeLeftMs } = input
  const { settings, slug } = app
  const rendered = renderEmail({ ...claim, app: settings, lifeLeftMs })
  const lines = composeLines({ ...makeGapTexts(input), settings, slug, type: claim.type, rendered })
  return Buffer.from(lines.map(encodeLine).join(''))
}

type MessageTexts = Pick<GapTexts, 'reference' | 'to' | 'date' | 'expires' | 'messageIdDomain'> & {
  readonly settings: AppSettings
  readonly slug: string
  readonly type: EmailType
  readonly rendered: Rendered
}

function composeLines(texts: MessageTexts): Line[] {
  const { reference, to, date, expires, messageIdDomain, settings, slug, type, rendered } = texts
  const boundary = `=_${reference}`
  const headers = [
    `From: ${mailbox(settings.from)}`,
    `To: ${to}`,
    ...(settings.replyTo === undefined ? [] : [`Reply-To: ${settings.replyTo}`]),
    `Subject: ${encodeText(rendered.subject)}`,
    `Date: ${date}`,
    `Message-ID: <${reference}@${messageIdDomain}>`,
    'MIME-Version: 1.0',
    ...listMarks({ reference, expires, type, slug, language: rendered.language }).map((mark) => mark.join(': ')),
    `Content-Type: multipart/alternative; boundary="${boundary}"`,
    '',
  ]
  return [
    ...headers.map(header),
    header(`--${boundary}`),
    ...part('text/plain', rendered.text),
    header(`--${boundary}`),
    ...part('text/html', rendered.html),
    header(`--${boundary}--`),
  ]
}

type Marks = Pick<MessageTexts, 'type' | 'slug' | 'reference' | 'expires'> & { readonly language: string }

/** The headers that tell mail systems what kind of message this is, and for how long it is of use. */
export const listMarks = ({ reference, expires, type, slug, language }: Marks): [name: string, value: string][] => [
  ['Expires', expires], // RFC 10080
  ['Content-Language', language], // RFC 3282
  ['Auto-Submitted', 'auto-generated'], // RFC 3834
  ['X-Auto-Response-Suppress', 'All'],
  ['Feedback-ID', `${type}:${slug}:auth:postern`],
  ['X-Entity-Ref-ID', reference], // so that Gmail neither threads resends nor hides the repeated button
]

const header = (text: string): Line => ({ text, encoding: 'header' })

function part(type: 'text/plain' | 'text/html', text: string): Line[] {
  const lines = text.split('\n')
  const encoding = lines.every(isPlain) ? '7bit' : 'quoted-printable'
  return [
    header(`Content-Type: ${type}; charset=utf-8`),
    header(`Content-Transfer-Encoding: ${encoding}`),
    header(''),
    ...lines.map((line): Line => ({ text: line, encoding, html: type === 'text/html' })),
  ]
}

/** RFC 2047 for text that is not plain ASCII. */
const encodeText = (text: string): string => mime.encodeWords(text, 'Q', 52, true)

function mailbox({ name, address }: { name: string; address: string }): string {
  const plain = /^[\x20-\x7e]*$/.test(name)
  const shown = plain ? `"${name.replace(/(["\\])/g, '\\$1')}"` : mime.encodeWord(name, 'Q', 52)
  return `${shown} <${address}>`
}
