/**
 * The settings of the environment, each declared once. The readers of this folder take names and defaults
 * from here, and so do the check for unknown settings and the table of docs/configuration.md.
 *
 *     POSTERN_APP_WEBHOOKS_PRIVATE: {
 *       default: { serve: 'no', dev: 'yes', command: 'no' },
 *       about: '`yes` allows [webhooks](app-webhooks.md) to private addresses, and over http',
 *     },
 */

/** `serve` needs every setting; `dev` and the commands fall back to what dev mode makes in ./.postern. */
export type Mode = 'serve' | 'dev' | 'command'

export type Setting = {
  /** The value if the variable is not set, in all modes or by mode. */
  readonly default?: string | Readonly<Partial<Record<Mode, string>>>
  /** Describes for the document what a variable without a default means. */
  readonly absent?: string
  /** Completes the fault "… is missing: ". */
  readonly example?: string
  /** Its meaning, in Markdown. */
  readonly about: string
}

/** The files of dev mode. */
export const dataFolder = './.postern'
export const devSecretKeysFile = `${dataFolder}/secret-keys`
export const devDatabaseUrl = `sqlite:${dataFolder}/postern.db`

export const roles = ['api', 'links', 'worker', 'console', 'reports', 'auth-hooks', 'submission'] as const
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const

const outsideServe = (value: string) => ({ dev: value, command: value })

export const settings = {
  POSTERN_DATABASE_URL: {
    default: outsideServe(devDatabaseUrl),
    absent: 'required by `serve`',
    example: 'for example sqlite:/var/lib/postern/postern.db, or postgres://user:password@host/database',
    about:
      '`sqlite:PATH` for one machine, or `postgres://user:password@host/database` (PostgreSQL 14 or newer) ' +
      'for several; separate multiple hosts with commas. Options `?schema=`, `?sslrootcert=FILE`, `?sslmode=disable`',
  },
  POSTERN_DATABASE_LISTEN_URL: {
    absent: '`POSTERN_DATABASE_URL`',
    about:
      'a direct connection for the worker, if `POSTERN_DATABASE_URL` goes through a ' +
      '[transaction pooler](postgresql.md#poolers)',
  },
  POSTERN_SECRET_KEYS: {
    default: outsideServe(`file:${devSecretKeysFile}`),
    absent: 'required by `serve`',
    example:
      'set the ring that the database was made with; for a new database, "postern secret new" prints one: ' +
      'set the whole line',
    about: 'the [key ring](#key-ring) `id:base64,id:base64,…`, or `file:PATH`',
  },
  POSTERN_SMTP_URL: {
    default: { dev: 'capture' },
    absent: 'required by `serve` with the role `worker`',
    example: 'for example smtp://user:password@host:587',
    about:
      'one or more [relays](relays.md) in order of preference, separated by spaces: ' +
      '`smtp://user:password@host:587`, `smtps://host`, or a [mail API](mail-apis.md)',
  },
  POSTERN_SMTP_CONNECTIONS: { default: '5', about: 'connections to each relay' },
  POSTERN_SMTP_NAME: {
    absent: "the machine's name",
    about:
      "the host name that Postern sends in EHLO; it must contain a dot. If the machine's name has none, see " +
      '[relays](relays.md)',
  },
  POSTERN_SMTP_RATE: { absent: 'no limit', about: 'emails a second from each process to each relay' },
  POSTERN_API_LISTEN: { default: '127.0.0.1:4020', about: 'the API' },
  POSTERN_API_URL: {
    absent: 'the listener, if it is on loopback',
    about: 'the URL at which apps reach the API, such as `https://mail.example.com`; shown beside a new key',
  },
  POSTERN_LINKS_LISTEN: {
    default: '127.0.0.1:4021',
    about: 'the pages of [hosted links](hosted-links.md)',
  },
  POSTERN_LINKS_BASE_URL: {
    absent: "none; in dev mode the listener's own",
    about: 'the https URL at which browsers reach those pages; may have a path. Without it there are no hosted links',
  },
  POSTERN_AUTH_HOOKS_LISTEN: {
    default: { dev: '127.0.0.1:4025' },
    about: 'where [auth servers](auth-hooks.md) post their emails',
  },
  POSTERN_AUTH_HOOKS_URL: {
    absent: 'the listener on this machine',
    about: 'the URL at which auth servers reach it, such as `https://hooks.example.com`; shown in setup instructions',
  },
  POSTERN_SUBMISSION_LISTEN: {
    about:
      'where programs that only speak SMTP [send their emails](smtp.md), such as `127.0.0.1:4027`; requires ' +
      '`POSTERN_SUBMISSION_TLS` except on loopback',
  },
  POSTERN_SUBMISSION_TLS_LISTEN: {
    about: 'the same with implicit TLS, such as `0.0.0.0:465`',
  },
  POSTERN_SUBMISSION_TLS: { about: '`CERTIFICATE:KEY`, two PEM files, for the submission listeners' },
  POSTERN_SUBMISSION_URL: {
    absent: 'the listener on this machine',
    about:
      'the address at which programs reach the submission listener, such as `smtp://mail.example.com:587`; shown in ' +
      'setup instructions',
  },
  POSTERN_CONSOLE_LISTEN: {
    default: '127.0.0.1:4022',
    about:
      'the [console](console.md) and the [management API](management.md); `off` turns both off. Let only your ' +
      'operators reach it',
  },
  POSTERN_CONSOLE_URL: {
    absent: '`http://postern.localhost:4022`',
    about:
      'the origin of the [console](console.md#a-name-of-its-own), https except on loopback. Its pages are served only under this name and, on loopback, under the names of this machine; ' +
      'passkeys are bound to it',
  },
  POSTERN_CONSOLE_PUBLIC: {
    about:
      '`yes` lets the dev-mode console, which needs no sign-in, listen on addresses other than loopback, for ' +
      'containers',
  },
  POSTERN_OIDC_ISSUER: {
    about: 'the [OpenID provider](console.md#openid-connect) for sign-in to the console; requires the next three',
  },
  POSTERN_OIDC_CLIENT_ID: {
    example: 'the id that the provider gave to Postern',
    about: "Postern's client id at the provider",
  },
  POSTERN_OIDC_CLIENT_SECRET: {
    example: 'the secret that the provider gave to Postern, or file:PATH',
    about: "the client's secret, or `file:PATH`",
  },
  POSTERN_OIDC_ROLES: {
    example: 'such as "claim=groups postern-admins=admin acme-team=operator:acme"',
    about: 'the role and apps of each group: `claim=groups postern-admins=admin acme-team=operator:acme`',
  },
  POSTERN_OPS_LISTEN: {
    default: '127.0.0.1:4023',
    about:
      '`/livez`, `/readyz`, `/metrics` (Prometheus), and `/link-domain`, which a [reverse proxy](hosted-links.md#a-domain-of-the-apps-own) asks',
  },
  POSTERN_QUEUE_MAX: {
    default: '1000000',
    about: 'how many emails may be queued; beyond that the API returns 503',
  },
  POSTERN_ROLES: {
    default: roles.join(','),
    about: 'what this process does',
  },
  POSTERN_BOUNCE_ADDRESS: {
    about:
      'gives each email a [bounce address](bounces.md) of its own, derived from this one, such as ' +
      '`bounces@bounce.example.com`; its domain needs MX and SPF records',
  },
  POSTERN_BOUNCE_LISTEN: {
    about:
      'where mail servers deliver reports: the [bounce listener](bounces.md#the-bounce-listener), such as ' +
      '`127.0.0.1:4024`',
  },
  POSTERN_BOUNCE_TLS: {
    about: '`CERTIFICATE:KEY`, two PEM files with which the bounce listener offers STARTTLS',
  },
  POSTERN_REPORTS_LISTEN: {
    about:
      'where [events of mail providers](provider-webhooks.md) arrive, such as `127.0.0.1:4026`; requires `POSTERN_REPORTS_KEYS`',
  },
  POSTERN_REPORTS_KEYS: {
    example: 'POSTERN_REPORTS_LISTEN takes calls that prove themselves, for example by basic:USER:PASSWORD',
    about: 'the [keys of the providers](provider-webhooks.md#set-up), such as `basic:USER:PASSWORD`, or `file:PATH`',
  },
  POSTERN_DNS_SERVERS: {
    about:
      'the resolvers for [checks of a domain](domains.md#check) and [webhooks](app-webhooks.md), such as `10.0.0.53`; ' +
      "without it, the machine's resolver and the name servers of each zone",
  },
  POSTERN_TRANSPORTS_PRIVATE: {
    default: { serve: 'no', dev: 'yes', command: 'no' },
    about: '`yes` lets the relays of [transports](transports.md) be in the private network',
  },
  POSTERN_APP_WEBHOOKS_PRIVATE: {
    default: { serve: 'no', dev: 'yes', command: 'no' },
    about:
      '`yes` lets [webhooks](app-webhooks.md) go to private addresses, and over http; the check of a [link domain](hosted-links.md#a-domain-of-the-apps-own) as well',
  },
  POSTERN_ALERTS_URL: {
    about: 'where [alerts](alerts.md) are posted; without it, none is sent. https, or http on the same machine',
  },
  POSTERN_ALERTS_SECRET: {
    about: 'signs the alerts: `whsec_` and at least 24 bytes in base64; without it, they are not signed',
  },
  POSTERN_LOG_LEVEL: {
    default: { serve: 'info', dev: 'warn', command: 'warn' },
    about: logLevels.map((level) => `\`${level}\``).join(', '),
  },
  POSTERN_URL: {
    about: 'for commands: run them through the [management API](management.md#from-another-machine) at this URL',
  },
  POSTERN_TOKEN_FILE: { about: 'for commands: the file with the token for `POSTERN_URL`' },
} as const satisfies Readonly<Record<`POSTERN_${string}`, Setting>>

export type SettingName = keyof typeof settings

/** The settings that may be missing: those with an example. */
export type NeededSetting = {
  [Name in SettingName]: (typeof settings)[Name] extends { readonly example: string } ? Name : never
}[SettingName]

export const settingNames = Object.keys(settings).toSorted() as SettingName[]

export function defaultOf(name: SettingName, mode: Mode): string {
  const { default: value = '' }: Setting = settings[name]
  return typeof value === 'string' ? value : (value[mode] ?? '')
}
