/** The reader's language, as an app's function tells an adapter. */
import { tell } from './background.ts'

/** A tag such as `pt-BR`, a list in the form of Accept-Language, or nothing. */
type Locale = string | null | undefined

type MaybePromise<T> = T | Promise<T>

/** Fields that an app has added; with `unknown`, each app would have to cast what it reads from them. */
// biome-ignore lint/suspicious/noExplicitAny: Better Auth types them so
export type OwnFields = Readonly<Record<string, any>>

/** Finds the reader's language for an email. */
export type FindLocale<Args extends unknown[]> = ((...args: Args) => MaybePromise<Locale>) | undefined

/** The languages of the browser that sent a request. */
export const fromBrowser = (request: { readonly headers: Headers } | null | undefined): string | undefined =>
  request?.headers.get('accept-language') ?? undefined

/** As the service reads it; a longer text would be refused as a part of a body that is too large. */
const charactersMax = 500
const waitMs = 2000

type Options<Args extends unknown[]> = {
  readonly locale?: FindLocale<Args>
  readonly onError?: ((error: unknown) => unknown) | undefined
}

/**
 * The field of an email. A language that cannot be found, or not in two seconds, keeps no email from being
 * sent.
 */
export async function findLocale<Args extends unknown[]>(
  { locale: find, onError }: Options<Args>,
  ...args: Args
): Promise<{ locale?: string }> {
  if (find === undefined) return {}
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the function "locale" took over two seconds')), waitMs)
  })
  try {
    const locale: unknown = await Promise.race([find(...args), late])
    return typeof locale === 'string' && locale !== '' && locale.length <= charactersMax ? { locale } : {}
  } catch (error) {
    await tell(onError ?? reportLocale, error)
    return {}
  } finally {
    clearTimeout(timer)
  }
}

const reportLocale = (error: unknown): void =>
  console.error("Postern: the language of an email was not found, so it is in the app's own.", error)
