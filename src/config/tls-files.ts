/** `CERTIFICATE:KEY`: two files in PEM. */
import { accessSync, constants } from 'node:fs'
import type { SmtpAddress } from '../smtp/smtp-listener.ts'
import { readPrivateFile } from './private-file.ts'
import type { Reader } from './reader.ts'
import type { SettingName } from './settings.ts'

/** Null if the setting is empty. */
export function readTlsFiles({ fault, text }: Reader, name: SettingName): SmtpAddress['tls'] {
  const given = text(name)
  if (given === '') return null
  const match = /^([^:]+):([^:]+)$/.exec(given)
  if (match === null) fault(`${name} must be CERTIFICATE:KEY, two files in PEM`)
  const [certFile = '', keyFile = ''] = match?.slice(1) ?? []
  const missing = [certFile, keyFile].find((file) => match !== null && !isReadable(file))
  if (missing !== undefined) fault(`${name}: cannot read ${missing}`)
  else if (match !== null) readPrivateFile(keyFile, (why) => fault(`${name}: ${why}`))
  return { certFile, keyFile }
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return false
  }
}
