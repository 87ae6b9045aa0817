/**
 * The texts of one language, made from its file: placeholders are filled in one pass, so that a name that
 * contains `{app}` stays text, and dates, numbers and plurals come from `Intl`.
 */
import type { CodePlace, Purpose } from '../../domain/request/email-content.ts'
import { type EmailType, emailKinds } from '../../domain/request/email-kinds.ts'
import type { Expiry, Letter, Paragraph } from '../letter.ts'
import type { LanguageFile } from './language-files.ts'

type Words = Omit<Letter, 'expires' | 'notes' | 'signOff'> & {
  readonly ignore: string
}

type Invitation = {
  readonly organisationName: string
  readonly inviterName?: string
  /** Whether the name may stand in the subject. */
  readonly plain: boolean
}

/** The page that a hosted link leads to. */
type HostedPageWords = {
  heading(kind: LetterKind, app: string): string
  readonly intro: string
  open(app: string): string
  readonly leadsTo: string
  /** Beside the scheme of a mobile app. */
  opensApp(app: string): string
  appMissing(app: string): string
  readonly fallback: string
  readonly expiredHeading: string
  expiredAdvice(app: string): string
  readonly unavailableHeading: string
  readonly unavailableAdvice: string
  readonly unknownHeading: string
  readonly unknownAdvice: string
}

export type Strings = Pick<LanguageFile['language'], 'direction' | 'quotes'> & {
  /** Font families that come before Helvetica, each with a comma behind it; empty for most languages. */
  readonly fonts: string
  /** The value of CSS. */
  readonly wordBreak: 'keep-all' | 'break-word'
  words(kind: LetterKind, app: string, code: CodePlace): Words
  invitation(app: string, invitation: Invitation): Words
  /** When the link, the code or both expire, by where the code is. */
  expires(expiry: Expiry, code: CodePlace): string
  /** For the text part, which has no button. */
  withoutButton(text: string): string
  /** Tells the reader to give the code to nobody. */
  neverAsk(app: string): string
  readonly linkHint: string
  /** Before the host of a hosted link. */
  readonly opens: string
  readonly keepPrivate: string
  /** The texts before and after a contact. */
  readonly support: readonly [before: string, after: string]
  /** Isolates a text where its direction may differ from that of the language (UAX 9). */
  isolate(text: string): string
  /** Rounded down to the largest unit that fits, as the sentence of `expires` wants it. */
  duration(ms: number): string
  /** In UTC. */
  dateTime(ms: number): string
  readonly hostedPage: HostedPageWords
}

/** The letters that a language has texts for. */
export const letterKinds = {
  ...emailKinds,
  address_change: { texts: 'addressChange', isPrivate: true },
  identity: { texts: 'identity', isPrivate: true },
} as const satisfies Readonly<Record<EmailType | Purpose, { texts: string; isPrivate: boolean }>>

type LetterKind = keyof typeof letterKinds

type Values = Readonly<Record<string, string>>

/** Puts values into their placeholders. */
export const fill = (text: string, values: Values): string =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')

const rightToLeft =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u

/** @param tag the language's tag (BCP 47) */
export function makeStrings(tag: string, file: LanguageFile): Strings {
  const { direction, quotes, fonts } = file.language
  const isolate = (text: string): string =>
    direction === 'rtl' || rightToLeft.test(text) ? `\u2068${text}\u2069` : text
  const ofApp = (text: string) => (app: string) => fill(text, { app: isolate(app) })
  const { hostedPage: page, organisationInvite: invite } = file
  const words = newWords(file, ofApp)
  let made: ReturnType<typeof makeFormats> | undefined
  const formats = () => (made ??= makeFormats(tag, file))
  const expires = { none: file.expires, beside: file.code.expiresWithLink, first: file.code.expires }
  return {
    direction,
    quotes,
    fonts: fonts === undefined ? '' : `${fonts},`,
    wordBreak: file.language.wordBreak ?? 'break-word',
    words,
    isolate,
    invitation: (app, { organisationName, inviterName, plain }) => {
      const paragraphs = [
        inviterName === undefined
          ? splitNames(invite.text, { app: isolate(app) }, { organisation: organisationName })
          : splitNames(
              invite.textWithInviter,
              { app: isolate(app) },
              { organisation: organisationName, inviter: inviterName },
            ),
        [ofApp(invite.typedNames)(app)],
      ]
      const subject = plain
        ? fill(invite.subject, { app, organisation: quotes.join(organisationName) })
        : fill(invite.subjectWithoutName, { app })
      return {
        ...words('organisation_invite', app, 'none'),
        subject,
        paragraphs,
        plainParagraphs: paragraphs,
      }
    },
    expires: ({ duration, dateTime }, place) => fill(expires[place], { in: duration, duration, dateTime }),
    withoutButton: (text) => replaceWords(text, file.language.withoutButton),
    neverAsk: ofApp(file.code.neverAsk),
    linkHint: file.linkHint,
    opens: file.opens,
    keepPrivate: file.keepPrivate,
    support: splitContact(file.support),
    duration: (ms) => formats().duration(ms),
    dateTime: (ms) => formats().dateTime(ms),
    hostedPage: {
      ...page,
      heading: (kind, app) => ofApp(file[letterKinds[kind].texts].heading)(app),
      open: ofApp(page.open),
      opensApp: ofApp(page.opensApp),
      appMissing: ofApp(page.appMissing),
      expiredAdvice: ofApp(page.expiredAdvice),
    },
  }
}

/** The words of an email, apart from the names of an invitation. */
function newWords(file: LanguageFile, ofApp: (text: string) => (app: string) => string) {
  return (kind: LetterKind, app: string, place: CodePlace): Words => {
    const letter = file[letterKinds[kind].texts]
    const { subject, preheader, heading, ignore } = letter
    // A letter that is about its code has no text for a link.
    const { text, button } = 'text' in letter ? letter : { text: letter.codeText, button: file.hostedPage.open }
    const linkText = place === 'beside' && 'textWithCode' in letter ? letter.textWithCode : text
    const isFirst = place === 'first'
    const intro = isFirst && 'codeText' in letter ? letter.codeText : file.code.beside
    // The preheader of a link does not suit a code; the colon goes, because nothing follows it there.
    const summary = isFirst ? intro.replace(/\s*[:：]$/, '') : preheader
    return {
      subject: fill(subject, { app }), // an invisible character shows as a box in some lists of mail
      preheader: ofApp(summary)(app),
      heading: ofApp(heading)(app),
      paragraphs: isFirst ? [] : [[ofApp(linkText)(app)]],
      plainParagraphs: isFirst ? [] : [[ofApp(replaceWords(linkText, file.language.withoutButton))(app)]],
      code: place === 'none' ? null : { intro: ofApp(intro)(app), isFirst },
      button: ofApp(isFirst ? file.hostedPage.open : button)(app),
      ignore: ofApp(ignore)(app),
    }
  }
}

const replaceWords = (text: string, words: Readonly<Record<string, string>>): string =>
  Object.entries(words).reduce((all, [from, to]) => all.replaceAll(from, to), text)

function splitContact(text: string): readonly [before: string, after: string] {
  const [before = '', after = ''] = text.split('{contact}')
  return [before, after]
}

/** The same, but names that people typed become pieces of their own. */
export const splitNames = (text: string, values: Values, names: Values): Paragraph =>
  text
    .split(/(\{\w+\})/)
    .filter((piece) => piece !== '')
    .map((piece) => {
      const name = names[piece.slice(1, -1)]
      return name === undefined || !piece.startsWith('{') ? fill(piece, values) : { name }
    })

/** Made with the first email of a language: a formatter costs far more to make than to use. */
function makeFormats(
  tag: string,
  { expires, language: { formats = tag, hourCycle = 'h23', wording = {} }, lessThanMinute }: LanguageFile,
): Pick<Strings, 'duration' | 'dateTime'> {
  const dates = new Intl.DateTimeFormat(formats, {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: hourCycle === 'h12' ? 'numeric' : '2-digit',
    minute: '2-digit',
    hourCycle,
    timeZone: 'UTC',
    timeZoneName: 'short',
  })
  const fromNow = new Intl.RelativeTimeFormat(formats, { numeric: 'always' })
  const newLength = (unit: Unit) => new Intl.NumberFormat(formats, { style: 'unit', unit, unitDisplay: 'long' })
  const lengths = { minute: newLength('minute'), hour: newLength('hour'), day: newLength('day') }
  // "in 15 Minuten" is another case than "15 Minuten" in many languages, so a file says which one it wants.
  const isFromNow = expires.includes('{in}')
  return {
    duration: (ms) => {
      const { unit, count } = wholeUnits(ms)
      if (count === 0) return lessThanMinute
      const words = isFromNow ? fromNow.format(count, unit) : lengths[unit].format(count)
      return replaceWords(words, wording)
    },
    dateTime: (ms) => replaceWords(dates.format(ms).replace('[UTC]', 'UTC'), wording), // zh-Hant has brackets, which look like a gap
  }
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

// An email that is sent seconds after its request should say 15 minutes, not 14.
const graceMs = 5 * second

type Unit = 'minute' | 'hour' | 'day'

/**
 * A length of time in whole units: days from 2 days on, hours from 2 hours on, else minutes: 95 minutes are
 * not called an hour. An hour itself is one.
 */
function wholeUnits(ms: number): { unit: Unit; count: number } {
  const length = ms + graceMs
  const minutes = Math.floor(length / minute)
  if (length >= 2 * day) return { unit: 'day', count: Math.floor(length / day) }
  if (length >= 2 * hour || minutes === 60) return { unit: 'hour', count: Math.floor(length / hour) }
  return { unit: 'minute', count: minutes }
}
