/** English. Dates are unambiguous for every reader of English: day, month by name, year. */
import type { EmailType } from '../../domain/request/email-request.ts'
import type { Paragraph } from '../emails/letter.ts'
import { type Invitation, type Strings, wholeUnits } from './strings.ts'

// Made once: making a formatter costs far more than using it.
const dates = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
})
const plurals = new Intl.PluralRules('en')

function invitationParagraphs(app: string, { organisationName, inviterName }: Invitation): Paragraph[] {
  const organisation = { name: organisationName }
  const invitation: Paragraph =
    inviterName === undefined
      ? ['You have been invited to join ', organisation, ` on ${app}.`]
      : [{ name: inviterName }, ' has invited you to join ', organisation, ` on ${app}.`]
  return [
    invitation,
    [`The names in quotation marks were typed by the person who sent this invitation, not by ${app}.`],
  ]
}

const hostedHeadings: Readonly<Record<EmailType, (app: string) => string>> = {
  magic_link: (app) => `Sign in to ${app}`,
  email_verification: () => 'Confirm your email address',
  password_reset: () => 'Reset your password',
  organisation_invite: () => 'Accept the invitation',
}

export const en: Strings = {
  direction: 'ltr',
  magicLink: (app) => ({
    subject: `Sign in to ${app}`,
    preheader: 'Your sign-in link is inside.',
    heading: `Sign in to ${app}`,
    paragraphs: [[`Press the button to sign in to ${app}. No password is needed.`]],
    button: 'Sign in',
    ignore: 'If you did not ask to sign in, ignore this email: nobody can sign in without the link.',
  }),
  emailVerification: (app) => ({
    subject: `Confirm your email address for ${app}`,
    preheader: 'One step left: confirm that this address is yours.',
    heading: 'Confirm your email address',
    paragraphs: [
      [
        `Press the button to confirm that this email address is yours, so that ${app} can use it for your account.`,
      ],
    ],
    button: 'Confirm address',
    ignore: `If you have not given this address to ${app}, ignore this email: nothing will be confirmed.`,
  }),
  passwordReset: (app) => ({
    subject: `Reset your ${app} password`,
    preheader: 'Choose a new password with the link inside.',
    heading: 'Reset your password',
    paragraphs: [[`Press the button to choose a new password for your ${app} account.`]],
    button: 'Choose a new password',
    ignore: 'If you did not ask for this, ignore this email: your password stays as it is.',
  }),
  organisationInvite: (app, invitation) => ({
    subject: invitation.plain
      ? `Join “${invitation.organisationName}” on ${app}`
      : `You have been invited to an organisation on ${app}`,
    preheader: `An invitation to join an organisation on ${app}.`,
    heading: 'You have been invited',
    paragraphs: invitationParagraphs(app, invitation),
    button: 'See the invitation',
    ignore: 'If you do not know the sender or expect no invitation, ignore this email.',
  }),
  expires: ({ duration, dateTime }) => `The link expires in ${duration} (${dateTime}).`,
  linkHint: 'If the button does not work, copy this link into your browser:',
  opens: 'The link opens a page on',
  keepPrivate: 'The link is for you alone: do not forward this email.',
  support: (contact) => `Questions? Contact ${contact}.`,
  duration: (ms) => {
    const { unit, count } = wholeUnits(ms)
    if (count === 0) return 'less than a minute'
    return `${count} ${plurals.select(count) === 'one' ? unit : `${unit}s`}`
  },
  dateTime: (ms) => `${dates.format(ms)} UTC`,
  hostedPage: {
    heading: (type, app) => hostedHeadings[type](app),
    intro: 'Press the button to continue. Nothing happens until you do.',
    open: (app) => `Open ${app}`,
    leadsTo: 'The button leads to',
    opensApp: (app) => `The button opens the ${app} app:`,
    appMissing: (app) =>
      `If nothing happens, the ${app} app is not installed on this device: open the email on the device that has it.`,
    fallback: 'Continue without the app',
    expiredHeading: 'This link has expired',
    expiredAdvice: (app) => `Go back to ${app} and ask for a new email.`,
    unavailableHeading: 'Please try again in a moment',
    unavailableAdvice: 'The link is fine, but it cannot be opened right now.',
    unknownHeading: 'This link does not work',
    unknownAdvice:
      'It may have been copied incompletely. Open it from the email again, or ask for a new email.',
  },
}
