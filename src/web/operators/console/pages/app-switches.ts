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
      html`The codes of requests are <b>${isOn ? 'shown' : 'ignored'}</b>. A code is for people who open their mail on another device. Unlike a link, it can be given to a caller on the telephone.`,
    on: 'Show them',
    off: 'Ignore them',
  },
  supersede: {
    path: 'supersede',
    describe: (isOn) =>
      isOn
        ? html`When a person asks again while an email still waits, as after the relay was unavailable, the older email is <b>cancelled</b> if it has the same link but for the token. Invitations are never cancelled.`
        : html`When a person asks again while an email still waits, <b>both are sent</b>, although the older link may no longer work.`,
    on: 'Cancel the older email',
    off: 'Send both',
  },
  allowLocalhost: {
    path: 'localhost',
    describe: (isOn) =>
      html`Links to localhost and 127.0.0.1 are <b>${isOn ? 'allowed' : 'refused'}</b>. Allow them only for an app in development.`,
    on: 'Allow them',
    off: 'Refuse them',
  },
}

export function renderSwitch(name: SwitchName, app: AppResource, mayChange: boolean): Html {
  const { describe, off, on, path } = switches[name]
  const isOn = app[name]
  const fields = { allow: isOn ? 'no' : 'yes' }
  const change = mayChange ? button(`/apps/${app.slug}/links/${path}`, isOn ? off : on, { fields }) : none
  return html`<p>${describe(isOn)}</p>${change}`
}
