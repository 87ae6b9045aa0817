/** The input of the four emails: a language, an app, and when the link expires. */
import type { AppSettings } from '../../domain/app/settings.ts'
import type { Strings } from '../locales/strings.ts'
import type { Expiry } from './letter.ts'

export type LetterContext = { readonly strings: Strings; readonly app: AppSettings; readonly expiry: Expiry }
