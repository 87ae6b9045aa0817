/**
 * Mail providers that replace the Message-ID and the envelope, and return a header of their own with their
 * reports: it carries the reference.
 */
import type { Reference } from './reference.ts'

export const relayProviders = ['postmark', 'sendgrid', 'brevo'] as const
export type RelayProvider = (typeof relayProviders)[number]

const hosts: Readonly<Record<string, RelayProvider>> = {
  'smtp.postmarkapp.com': 'postmark',
  'smtp-broadcasts.postmarkapp.com': 'postmark',
  'smtp.sendgrid.net': 'sendgrid',
  'smtp-relay.brevo.com': 'brevo',
}

/** By the name of an SMTP server; null for any other server. */
export const findProvider = (host: string): RelayProvider | null =>
  Object.hasOwn(hosts, host) ? (hosts[host] ?? null) : null

/** A header line by which the provider's reports name the email; the documents of each describe it. */
export function writeReferenceHeader(provider: RelayProvider, reference: Reference): string {
  switch (provider) {
    case 'postmark':
      return `X-PM-Metadata-postern: ${reference}\r\n`
    case 'sendgrid':
      return `X-SMTPAPI: {"unique_args":{"postern":"${reference}"}}\r\n`
    case 'brevo':
      return `X-Mailin-custom: ${reference}\r\n`
    default:
      return provider satisfies never
  }
}
