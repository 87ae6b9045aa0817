/** Where a server listens, or is. */
type HostPort = { readonly host: string; readonly port: number }

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** `host:port`, as URLs have it: an IPv6 address is in brackets. */
export const formatHostPort = ({ host, port }: HostPort): string => `${bracketed(host)}:${port}`

const loopbackByAny: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Where this machine reaches a server that listens at an address: on loopback if it listens on all. */
export const reachOwn = ({ host, port }: HostPort): HostPort => ({ host: loopbackByAny[host] ?? host, port })
