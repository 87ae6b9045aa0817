/** The terms of an SPF record, by the grammar of RFC 7208, section 12. */

export type Term = {
  /** In small letters. That of a modifier ends in `=`. */
  readonly name: string
  /** One of `+-~?`. */
  readonly qualifier: string
  /** The domain; empty for that of the record, and where the term has none. */
  readonly argument: string
  /** `all`, or a network of all addresses. */
  readonly isWide: boolean
}

/** @returns the fault, if there is one */
export function parseTerm(text: string): Term | string {
  const [, modifier, value = ''] = /^([A-Za-z][A-Za-z0-9_.-]*)=(.*)$/.exec(text) ?? []
  if (modifier !== undefined) return parseModifier(modifier.toLowerCase(), value, text)
  const [, qualifier = '', name = '', rest = ''] = /^([+?~-]?)([A-Za-z0-9]+)(.*)$/.exec(text) ?? []
  const parsed = parseMechanism(name.toLowerCase(), rest)
  if (parsed === null) return `"${cut(text)}" is no term of SPF`
  if (parsed.argument !== '' && !isDomain(parsed.argument)) return `"${cut(text)}" names no domain`
  return { name: name.toLowerCase(), qualifier: qualifier || '+', ...parsed }
}

/** Receivers ignore modifiers that they do not know, such as `include=`. */
function parseModifier(name: string, value: string, text: string): Term | string {
  const isValid = name === 'redirect' || name === 'exp' ? isDomain(value) : isMacroString(value)
  return isValid
    ? { name: `${name}=`, qualifier: '+', argument: value, isWide: false }
    : `"${cut(text)}" names no domain`
}

type Parsed = Pick<Term, 'argument' | 'isWide'>

/** Without a zero in front. */
const number = String.raw`(?:0|[1-9]\d{0,2})`
const hosts = new RegExp(`^(?::([^/]+))?(?:/(${number}))?(?://(${number}))?$`)
const networks = new RegExp(`^:([0-9A-Fa-f.:]{2,45})(?:/(${number}))?$`)
const ipv4 = new RegExp(String.raw`^${number}(?:\.${number}){3}$`)

function parseMechanism(name: string, rest: string): Parsed | null {
  switch (name) {
    case 'all':
      return rest === '' ? { argument: '', isWide: true } : null
    case 'ptr':
      if (rest === '') return { argument: '', isWide: false }
      return rest.length > 1 && rest.startsWith(':') ? { argument: rest.slice(1), isWide: false } : null
    case 'include':
    case 'exists':
      return rest.length > 1 && rest.startsWith(':') ? { argument: rest.slice(1), isWide: false } : null
    case 'a':
    case 'mx': {
      const match = hosts.exec(rest)
      const [, argument = '', four = '32', six = '128'] = match ?? []
      if (match === null || Number(four) > 32 || Number(six) > 128) return null
      return { argument, isWide: four === '0' || six === '0' }
    }
    case 'ip4':
    case 'ip6': {
      const [, address = '', prefix] = networks.exec(rest) ?? []
      const [isAddress, bits] = name === 'ip4' ? [isIPv4(address), 32] : [isIPv6(address), 128]
      return isAddress && Number(prefix ?? bits) <= bits ? { argument: '', isWide: prefix === '0' } : null
    }
    default:
      return null
  }
}

const isIPv4 = (text: string): boolean => ipv4.test(text) && text.split('.').every((part) => Number(part) <= 255)

const isIPv6 = (text: string): boolean => text.includes(':') && URL.canParse(`http://[${text}]/`)

const domainMax = 253
/** Its last label has something else than digits. */
const domainName = /^(?:[A-Za-z0-9_-]{1,63}\.)+(?!\d+\.?$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.?$/
/** `%{ir}`, `%%`, or another visible character. */
const macroString = /^(?:[!-$&-~]|%[%_-]|%\{[slodiphcrtvSLODIPHCRTV]\d{0,3}[rR]?[-.+,/_=]{0,9}\})*$/

const isMacroString = (text: string): boolean => macroString.test(text)

const isDomain = (text: string): boolean =>
  text.length <= domainMax && (text.includes('%') ? isMacroString(text) : domainName.test(text))

const shownMax = 60
const cut = (term: string): string => term.replace(/[^!-~]/g, '?').slice(0, shownMax)
