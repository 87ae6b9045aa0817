/** Subjects on the wire, in every language and with names of any script. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import PostalMime from 'postal-mime'
import { sampleNames } from '../../../test/support/language-samples.ts'
import { defaultSettings } from '../../domain/app/settings.ts'
import type { Reference } from '../../domain/delivery/reference.ts'
import type { AppId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import { type EmailType, emailTypes } from '../../domain/request/email-kinds.ts'
import { renderEmail } from '../../templates/emails/render-email.ts'
import { languageTags } from '../../templates/locales/language-files.ts'
import { composeMessage } from './compose-message.ts'

const reference = 'em_01m7x4pm530000dj4zwn0hsje3.0123456789' as Reference
const compose = (locale: string, type: EmailType, name: string) => {
  const settings = { ...defaultSettings, name, from: { name, address: 'auth@acme.test' } }
  const content = {
    ...{ to: 'ana@example.com' as EmailAddress, messageIdDomain: 'acme.test', locale },
    ...{ url: 'https://app.acme.test/auth?token=abc', organisationName: name },
  }
  const claim = { ...{ type, acceptedAt: 0, ageMs: 0, expiresAt: 900_000 }, content }
  const app = { id: 'app_1' as AppId, version: 1, slug: 'acme', settings }
  const { subject } = renderEmail({ ...claim, app: settings, lifeLeftMs: 900_000 })
  return { subject, bytes: composeMessage({ claim, reference, app, lifeLeftMs: 900_000 }) }
}

test('a subject comes back from the wire as it was, on lines of at most 76 ASCII characters', async () => {
  for (const locale of languageTags)
    for (const type of emailTypes)
      for (const name of sampleNames) {
        const { subject, bytes } = compose(locale, type, name)
        const message = await PostalMime.parse(bytes)
        assert.deepEqual([message.subject, message.from?.name], [subject, name], `${locale} ${type}`)
        const [head = ''] = bytes.toString().split('\r\n\r\n')
        for (const line of head.split('\r\n')) assert.match(line, /^[\t\x20-\x7e]{1,76}$/, `${locale} ${type}`)
      }
})

test('an English email is plain ASCII, sent as it is; an invitation is not, for its quotation marks', () => {
  for (const type of emailTypes) {
    const message = compose('en', type, 'Acme').bytes.toString()
    assert.equal(/^[\r\n\x20-\x7e]*$/.test(message), true, type)
    const encodings = message.match(/(?<=^Content-Transfer-Encoding: ).*/gm)
    const encoding = type === 'organisation_invite' ? 'quoted-printable' : '7bit'
    assert.deepEqual(encodings, [encoding, encoding], type)
  }
})
