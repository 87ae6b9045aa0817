/** The language of a page: that of the email whose link leads to it. */
import { pageWords } from './page-words.ts'

export type PageLanguage = keyof typeof pageWords

export const wordsOf = (language: PageLanguage) => pageWords[language]

const isLanguage = (tag: string): tag is PageLanguage => Object.hasOwn(pageWords, tag)

/** Languages whose tag is another one than people write. */
const others: Readonly<Record<string, PageLanguage>> = {
  no: 'nb',
  nn: 'nb',
  pt: 'pt-BR',
  iw: 'he',
  in: 'id',
  zh: 'zh-Hans',
}
const traditional = /^zh-(?:hant|tw|hk|mo)\b/

/**
 * Chooses a language of the pages.
 * @param locale a tag such as `pt-BR`, or a list in the form of Accept-Language
 * @returns null if the pages have none of them
 */
export function choosePageLanguage(locale: string | null | undefined): PageLanguage | null {
  const asked = (locale ?? '').slice(0, 500).toLowerCase().split(',')
  const weighed = asked.map((each) => {
    const [tag = '', weight = ''] = each.split(';')
    return { tag: tag.trim().replaceAll('_', '-'), q: Number(weight.trim().slice(2) || 1) }
  })
  for (const { tag, q } of weighed.sort((a, b) => b.q - a.q)) {
    const [base = ''] = tag.split('-')
    const found = traditional.test(tag) ? 'zh-Hant' : (others[base] ?? base)
    if (q > 0 && isLanguage(found)) return found
  }
  return null
}

const parameter = 'postern-lang='

/** The parameters of a link, with the language of its page as the last one. */
export function withLanguage(rest: string, locale: string | undefined): string {
  const language = choosePageLanguage(locale)
  if (language === null) return rest
  return [...(rest === '' ? [] : [rest]), `${parameter}${language}`].join('&')
}

/** Reverses `withLanguage`. Without a language, a page is in English. */
export function takeLanguage(rest: string): { rest: string; language: PageLanguage } {
  const parameters = rest.split('&')
  const last = parameters.at(-1) ?? ''
  const tag = last.startsWith(parameter) ? last.slice(parameter.length) : ''
  return isLanguage(tag) ? { rest: parameters.slice(0, -1).join('&'), language: tag } : { rest, language: 'en' }
}
