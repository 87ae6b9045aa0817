/**
 * Domains that RFC 2606 and RFC 6761 reserve for tests and documentation: mail for them can only bounce, and
 * bounces count against the account that sent it.
 */

const topLevel = new Set(['test', 'example', 'invalid', 'localhost'])
const secondLevel = new Set(['example.com', 'example.net', 'example.org'])

/** Whether an address is in a reserved domain, or below one. */
export function isReservedDomain(address: string): boolean {
  const labels = address
    .slice(address.lastIndexOf('@') + 1)
    .toLowerCase()
    .split('.')
  return topLevel.has(labels.at(-1) ?? '') || secondLevel.has(labels.slice(-2).join('.'))
}
