/** The languages of emails, as a choice in forms. `Intl` makes their names only when a form is shown. */
import { languageTags, nameLanguage } from '../../../templates/locales/locales.ts'

export const languageChoices = () => languageTags.map((tag) => [tag, nameLanguage(tag)] as const)

/** One of them, or that of the app. */
export const languageOrApp = () => [['', "the app's language"], ...languageChoices()] as const

/** The tag that a form chose; undefined for the app's language. */
export const readLanguage = (text: string | null): string | undefined => languageTags.find((tag) => tag === text)
