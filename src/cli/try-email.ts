/** Commands to try an email: check a link, preview an email, send one, and see which language is chosen. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Option } from 'commander'
import { escapeControls } from '../domain/controls.ts'
import { type CodePlace, codePlaces } from '../domain/request/email-content.ts'
import type { EmailType } from '../domain/request/email-kinds.ts'
import type { EmailDetail } from '../management/emails/emails.ts'
import { type CommandSpec, command, given, option } from './command.ts'
import type { Call, CliDeps } from './context.ts'
import { numberParser, typeOption } from './options.ts'
import { CommandFailed, listing, print } from './output.ts'

export const checkLinkCommand = command({
  use: 'check-link <app> <url>',
  about: 'check whether a link would be sent for an app, and if not, why',
  options: [typeOption()],
  notes: 'Any text will do as the token: do not give a real one, which others could see.',
  examples: ["postern check-link acme 'https://app.acme.test/auth?token=any'"],
  run: ({ call }, [app, url], { type }: { type: EmailType }) =>
    call('app.check_link', { params: { app }, body: { url, type } }),
  show({ appStatus, hosted, refusal, entries }, [app]) {
    const verdict =
      refusal === null
        ? `The allow-list of ${app} allows the link${hosted ? ', which goes through a Postern page' : ''}.`
        : [
            [`${refusal.code}: ${refusal.message}`, refusal.advice].filter(Boolean).join(' '),
            ...refusal.issues.map(({ code, message }) => `  ${code}: ${message}`),
          ].join('\n')
    const compared = listing(entries, '', {
      entry: ({ entry }) => entry,
      result: ({ differs }) => (differs === null ? 'matches' : `different ${differs}`),
    })
    const disabled = appStatus === 'active' ? '' : `The app is ${appStatus}: all its requests are refused.`
    return [verdict, compared, disabled].filter(Boolean).join('\n\n')
  },
  fault: ({ allowed }) => (allowed ? null : 'the link would not be sent; see above'),
})

/** They surround names in languages that are written from right to left; a terminal shows them as signs. */
const isolates = /[\u2068\u2069]/g

/** Where the email has a sample code; as the app allows unless given. */
const codeOption = (): Option =>
  new Option('--code <place>', 'where it has a code (default: as the app allows)').choices(codePlaces)

type SampleOptions = { readonly locale?: string; readonly code?: CodePlace }

export const previewCommand = command({
  use: 'preview <app>',
  about: 'print one of an app’s emails, with sample content',
  options: [
    typeOption(),
    option('--locale <language>', 'as in a request, such as de or "ca, es;q=0.9"'),
    codeOption(),
    option('--html', 'print the HTML, for example into a file to open in a browser'),
  ],
  examples: ['postern preview acme --html > preview.html'],
  run: ({ call }, [app], { type, locale, code }: SampleOptions & { type: EmailType; html?: boolean }) =>
    call('app.preview', { params: { app }, body: { type, ...given({ locale, code }) } }),
  show: ({ html, language, subject, text }, _, { html: asHtml }) =>
    asHtml
      ? escapeControls(html, (hex) => `&#x${hex};`)
      : `Language: ${language}\nSubject: ${subject}\n\n${text.replace(isolates, '')}`,
})

const pollMs = 250

const parseWait = numberParser('--wait', ' of seconds from 1 to 600', 600)

export const sendTestCommand = command({
  use: 'send-test <address>',
  about: 'send one test email and wait for the result',
  options: [
    option('--app <app>', 'the app that sends it').makeOptionMandatory(),
    option('--locale <language>', 'the language of the email, as in a request'),
    codeOption(),
    option('--wait <seconds>', 'how long to wait', parseWait).default(10),
  ],
  examples: ['postern send-test YOUR@ADDRESS --app acme'],
  async run({ call }, [to], { app, code, locale, wait }: SampleOptions & { app: string; wait: number }) {
    const body = { to, ...given({ code, locale }) }
    const { email: id } = await call('app.test_email', { params: { app }, body })
    return untilFinished(call, id, wait * 1000)
  },
  show(email) {
    const hint = isTried(email)
      ? ''
      : '\nThe email stays queued. "postern doctor" says whether a process is sending and whether the relays answer.'
    return `${email.id}: ${email.explanation}${hint}`
  },
  fault(email, _, { wait }) {
    if (!isTried(email)) return `the test email was not tried within ${wait} s; see above`
    if (email.finishedAt === null)
      return `the test email was not delivered within ${wait} s, and will be tried again; see above`
    return email.state === 'delivered' ? null : 'the test email was not delivered; see above'
  },
})

/** An outcome without an attempt says nothing about the relay. */
const isTried = ({ trail, finishedAt }: EmailDetail): boolean =>
  finishedAt !== null || trail.some(({ outcome }) => outcome !== 'unattempted')

/** The email once it has finished, or as it is after the wait. */
async function untilFinished(call: Call, id: string, waitMs: number): Promise<EmailDetail> {
  const endMs = performance.now() + waitMs
  for (;;) {
    const email = await call('email.show', { params: { email: id } })
    if (email.finishedAt !== null || performance.now() >= endMs) return email
    await sleep(pollMs)
  }
}

export const languagesCommand: CommandSpec = {
  use: 'languages [locale]',
  about: 'list the languages of the emails; given the locale of a request, print the language chosen for it',
  examples: ["postern languages 'ca, es;q=0.9'"],
  act: (deps, [locale]) => (locale === undefined ? list(deps) : choose(deps, locale)),
}

// Templates are loaded by this command alone.
async function list({ output }: CliDeps): Promise<void> {
  const { languageTags, readLanguageFile } = await import('../templates/locales/language-files.ts')
  const { nameLanguage } = await import('../templates/locales/locales.ts')
  const languages = languageTags.map((tag) => {
    const { direction, readBy } = readLanguageFile(tag).language
    return { tag, name: nameLanguage(tag), direction, readBy: [...readBy] }
  })
  print(output, languages, () =>
    listing(languages, '', {
      tag: ({ tag }) => tag,
      language: ({ name }) => name,
      direction: ({ direction }) => direction,
      'read by native speakers': ({ readBy }) => readBy.join(', ') || 'nobody yet',
    }),
  )
}

async function choose({ output }: CliDeps, locale: string): Promise<void> {
  const { chooseLanguage } = await import('../templates/locales/choose-language.ts')
  const tag = chooseLanguage(locale)
  if (tag === null) throw new CommandFailed('Postern has none of these languages: the email is in the app’s language')
  print(output, { tag }, () => tag)
}
