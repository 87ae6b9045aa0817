/** Where a server listens, or is. */
type HostPort = { readonly host: string; readonly port: number }

/** `host:port`, as URLs have it: an IPv6 address is in brackets. */
export const formatHostPort = ({ host, port }: HostPort): string => `${host.includes(':') ? `[${host}]` : host}:${port}`

/**
 * Where this machine reaches a server that listens at an address: on loopback if it listens on all. `::`
 * takes IPv4 too.
 */
export const reachOwn = ({ host, port }: HostPort): HostPort => ({
  host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host,
  port,
})
