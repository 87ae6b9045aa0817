/** The reader's language, as an app's function tells an adapter. */

/** A tag such as `pt-BR`, a list in the form of Accept-Language, or nothing. */
type Locale = string | null | undefined

type MaybePromise<T> = T | Promise<T>

/** Finds the reader's language for an email. */
export type FindLocale<Args extends unknown[]> = ((...args: Args) => MaybePromise<Locale>) | undefined

/** The languages of the browser that sent a request. */
export const fromBrowser = (request: { readonly headers: Headers } | null | undefined): string | undefined =>
  request?.headers.get('accept-language') ?? undefined

/** The field of an email. A language that cannot be found keeps no email from being sent. */
export async function findLocale<Args extends unknown[]>(
  find: FindLocale<Args>,
  ...args: Args
): Promise<{ locale?: string }> {
  try {
    const locale = await find?.(...args)
    return locale ? { locale } : {}
  } catch (error) {
    console.error('Postern: the language of an email was not found, so it is in that of the app.', error)
    return {}
  }
}
