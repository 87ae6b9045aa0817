/**
 * The lines of an env file that set Postern's variables. Other programs read such a file in other ways, and a
 * value that one of them would cut, or a name that none would find, is refused with the number of its line.
 */
import type { Environment } from './reader.ts'

/**
 * Characters that nobody sees, besides spaces, tabs and line breaks: byte order marks, spaces of other kinds,
 * joiners, controls.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u2000-\u200a\u202f\u205f\u3000]/u

const nameUnseen = (text: string): string | null => {
  const [found] = unseen.exec(text.replace(/[\t\r\n]/g, ' ')) ?? []
  return found === undefined ? null : `U+${found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`
}

/** A fault of the value of a variable, which never repeats it; null if it has none. */
export function findValueFault(value: string): string | null {
  const character = nameUnseen(value.trim())
  if (character !== null) return `has an invisible character (${character}) in its value: write it anew`
  if (/^(["'`]).*\1$/.test(value.trim()))
    return 'has quotes around its value, as Docker’s --env-file keeps them: leave them out'
  return null
}

/** @param fault called with the number of a line, and why it is refused */
export function parseEnvFile(text: string, fault: (line: number, why: string) => void): Environment {
  const variables: Record<string, string> = {}
  if (/[\0\ufffd]/.test(text)) {
    fault(1, 'this is not text in UTF-8 (UTF-16, perhaps): save the file as UTF-8')
    return variables
  }
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)
  for (const [index, line] of lines.entries()) {
    const setting = readLine(line, (why) => fault(index + 1, why))
    if (setting !== null) variables[setting.name] = setting.value
  }
  return variables
}

type Setting = { readonly name: string; readonly value: string }

/** Null for a line without a variable of Postern's. */
function readLine(line: string, fault: (why: string) => void): Setting | null {
  const [, before = '', name = '', rest = ''] = /^([^#=]*?)(?<!\w)(POSTERN_\w*)(.*)$/.exec(line) ?? []
  if (name === '' || /^[ \t]*#/.test(line)) return null
  const character = nameUnseen(before) ?? nameUnseen(/^[^=]*/.exec(rest)?.[0] ?? '')
  const equals = /^[ \t]*=/.exec(rest)?.[0]
  if (character !== null) fault(`there is an invisible character (${character}) beside ${name}: write the line anew`)
  else if (!/^[ \t]*(?:export[ \t]+)?$/.test(before) || equals === undefined) fault(`write ${name}=VALUE`)
  else {
    const value = readValue(rest.slice(equals.length).trim(), (why) => fault(`${name} ${why}`))
    return value === null ? null : { name, value }
  }
  return null
}

function readValue(written: string, fault: (why: string) => void): string | null {
  const quote = /^["'`]/.exec(written)?.[0]
  const end = quote === undefined ? -1 : written.indexOf(quote, 1)
  const value = quote === undefined ? written.replace(/(^|[ \t]+)#.*$/, '') : written.slice(1, end)
  const why =
    quote !== undefined && end < 0
      ? `begins with a quote (${quote}) that does not end on its line`
      : quote !== undefined && !/^[ \t]*(?:#.*)?$/.test(written.slice(end + 1))
        ? 'has more after the quote that ends its value: only a comment may follow'
        : quote === undefined && value.includes('#')
          ? 'has a # in its value, which begins a comment: put the value in quotes'
          : quote === undefined && /["'`]$/.test(value)
            ? 'ends with a quote, and does not begin with one'
            : findValueFault(value)
  if (why === null) return value
  fault(why)
  return null
}
