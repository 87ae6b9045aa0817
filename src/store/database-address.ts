/**
 * Where a database is: one SQLite file, or a PostgreSQL cluster. `src/config/database-url.ts` reads the text
 * form.
 */

export type DatabaseHost = { readonly host: string; readonly port: number }

export type PostgresAddress = {
  readonly engine: 'postgres'
  /** A host that begins with a slash is the folder of a Unix socket. */
  readonly hosts: readonly DatabaseHost[]
  readonly user: string
  readonly password: string
  readonly database: string
  readonly schema: string
  /** Null: no TLS. `ca` is the path of a file of authorities; null takes those Node trusts. */
  readonly tls: { readonly ca: string | null } | null
}

export type DatabaseAddress = { readonly engine: 'sqlite'; readonly path: string } | PostgresAddress
