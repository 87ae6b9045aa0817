/** `POSTERN_SECRET_KEYS`: the key ring, as text or as the name of a file. */
import { type KeyRing, parseKeyRing } from '../store/crypto/key-ring.ts'
import { readPrivateFile } from './private-file.ts'
import type { Reader } from './reader.ts'
import { devSecretKeysFile } from './settings.ts'

const name = 'POSTERN_SECRET_KEYS'

/** Null if a fault was reported. No fault repeats a secret. */
export function readSecretKeys(reader: Reader): KeyRing | null {
  const { fault, isSet, mode, required } = reader
  if (mode === 'command' && !isSet(name) && isSet('POSTERN_DATABASE_URL')) {
    fault(`${name} is missing: ${sameRing}`)
    return null
  }
  const given = required(name)
  if (given === '') return null
  const file = /^file:(.+)$/.exec(given)?.[1]
  const content = file === undefined ? given : readSecretFile(file, fault)
  if (content === null) return null
  const parsed = parseKeyRing(content)
  if ('ring' in parsed) return parsed.ring
  fault(`${name}: ${parsed.fault}; ${sameRing}`)
  return null
}

const sameRing =
  'set the ring that the database or backup was made with (a new key cannot open it; for a new database, "postern secret new" prints one)'

/**
 * A secret that is given as itself or as `file:PATH`, whose text is trimmed. Empty after a fault.
 * @param name what the fault is about
 */
export function readGivenSecret(given: string, name: string, fault: Reader['fault']): string {
  const file = /^file:(.+)$/.exec(given)?.[1]
  if (file === undefined) {
    if (given === '') fault(`${name} is empty`)
    return given
  }
  try {
    const text = readPrivateFile(file, (why) => fault(`${name}: ${why}`)).trim()
    if (text === '') fault(`${name}: ${file} is empty`)
    return text
  } catch {
    fault(`${name}: cannot read ${file}`)
    return ''
  }
}

function readSecretFile(file: string, fault: Reader['fault']): string | null {
  try {
    return readPrivateFile(file, (why) => fault(`${name}: ${why}`))
  } catch {
    fault(
      file === devSecretKeysFile
        ? `${name} is missing, and this folder (${process.cwd()}) has no ${file}: "postern dev" creates one. Otherwise set POSTERN_DATABASE_URL and ${name} (--env-file FILE reads them from a file), or use --url to run the command on a service elsewhere`
        : `${name}: cannot read ${file}: ${sameRing}`,
    )
    return null
  }
}
