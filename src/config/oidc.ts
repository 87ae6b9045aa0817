/** The OpenID provider by which people sign in to the console, and what their groups may do. */
import { isLoopback } from '../domain/client-network.ts'
import { roles } from '../domain/operator/management-token.ts'
import type { OidcSettings } from '../web/operators/sign-in/oidc.ts'
import type { Reader } from './reader.ts'
import { readGivenSecret } from './secrets.ts'

const names = {
  issuer: 'POSTERN_OIDC_ISSUER',
  clientId: 'POSTERN_OIDC_CLIENT_ID',
  clientSecret: 'POSTERN_OIDC_CLIENT_SECRET',
  roles: 'POSTERN_OIDC_ROLES',
} as const

/** Null unless `POSTERN_OIDC_ISSUER` is set. No fault repeats the secret. */
export function readOidc(reader: Reader): OidcSettings | null {
  const { fault, mode, required, text } = reader
  const issuer = text(names.issuer)
  if (issuer === '' || mode !== 'serve') return null
  const url = URL.parse(issuer)
  const isLocal = url?.protocol === 'http:' && isLoopback(url.hostname)
  if (url === null || !(url.protocol === 'https:' || isLocal) || url.search !== '')
    fault(`${names.issuer} must be the https address that the provider documents as its issuer`)
  const clientId = required(names.clientId)
  const given = required(names.clientSecret)
  const rules = required(names.roles)
  return {
    issuer,
    clientId,
    clientSecret: readGivenSecret(given, names.clientSecret, fault),
    ...readRoles(reader, rules),
  }
}

/** `claim=NAME` and `GROUP=ROLE` or `GROUP=ROLE:APP`, separated by spaces. */
function readRoles({ fault }: Reader, text: string): Pick<OidcSettings, 'claim' | 'groups'> {
  const groups: OidcSettings['groups'][number][] = []
  let claim = 'groups'
  for (const rule of text.split(/\s+/).filter(Boolean)) {
    const [, name = '', value = ''] = /^(.+)=([^=]+)$/.exec(rule) ?? []
    const [, given, app = null] = /^([a-z]+)(?::([^:]+))?$/.exec(value) ?? []
    const role = roles.find((known) => known === given)
    if (name === 'claim') claim = value
    else if (role !== undefined) groups.push({ group: name, role, app })
    else fault(`${names.roles}: "${rule}" must look like claim=groups, GROUP=${roles.join('|')} or GROUP=ROLE:APP`)
  }
  return { claim, groups }
}
