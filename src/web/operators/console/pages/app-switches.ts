/** Settings of an app that are on or off: a sentence that says which, and a button that switches it. */
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { button } from '../parts.ts'

export type SwitchName = 'allowCodes' | 'supersede' | 'allowLocalhost'

type Switch = {
  /** Below the page of the app's links. */
  readonly path: string
  readonly describe: (isOn: boolean) => Html
  readonly on: string
  readonly off: string
}

const switches: Readonly<Record<SwitchName, Switch>> = {
  allowCodes: {
    path: 'codes',
    describe: (isOn) =>
      html`Codes in requests are <b>${isOn ? 'shown in emails' : 'ignored'}</b>. A code helps people who open their mail on another device, but a scammer can talk them into reading it out.`,
    on: 'Show codes',
    off: 'Stop showing codes',
  },
  supersede: {
    path: 'supersede',
    describe: (isOn) =>
      isOn
        ? html`When a person asks again while an email still waits, as after the relay was unavailable, the older email is <b>cancelled</b> if its link differs only in the token. Invitations are never cancelled.`
        : html`When a person asks again while an email still waits, <b>both are sent</b>, although the older link may no longer work.`,
    on: 'Cancel the older email',
    off: 'Send both emails',
  },
  allowLocalhost: {
    path: 'localhost',
    describe: (isOn) =>
      html`Links to localhost and 127.0.0.1 are <b>${isOn ? 'allowed' : 'refused'}</b>. Allow them only for an app in development.`,
    on: 'Allow links to localhost',
    off: 'Refuse links to localhost',
  },
}

export function renderSwitch(name: SwitchName, app: AppResource, mayChange: boolean): Html {
  const { describe, off, on, path } = switches[name]
  const isOn = app[name]
  const fields = { allow: isOn ? 'no' : 'yes' }
  const change = mayChange ? button(`/apps/${app.slug}/links/${path}`, isOn ? off : on, { fields }) : none
  return html`<p>${describe(isOn)}</p>${change}`
}
