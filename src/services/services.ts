/** All mail services that Postern knows, and what is derived from them. The first match counts. */
import type { ReportSource } from '../domain/delivery/report.ts'
import { brevo } from './brevo.ts'
import { generic } from './generic.ts'
import { google } from './google.ts'
import { mailgun } from './mailgun.ts'
import { microsoft } from './microsoft.ts'
import { postmark } from './postmark.ts'
import { resend } from './resend.ts'
import { sendgrid } from './sendgrid.ts'
import type { ApiService, MailService, ServiceEvents, SmtpService, TokenServer } from './service.ts'
import { ses } from './ses.ts'

export const services: readonly MailService[] = [
  ...[postmark, resend, microsoft, google, ses, sendgrid, mailgun, brevo, generic],
]

export type ApiMailService = MailService & { readonly api: ApiService }
export type EventService = MailService & { readonly events: ServiceEvents }
export type SmtpMailService = MailService & { readonly smtp: SmtpService }
export type TokenService = MailService & { readonly tokens: TokenServer }

const smtpServices = services.filter((service): service is SmtpMailService => service.smtp !== undefined)
export const apiServices = services.filter((service): service is ApiMailService => service.api !== undefined)
export const eventServices = services.filter((service): service is EventService => service.events !== undefined)
export const tokenServices = services.filter((service): service is TokenService => service.tokens !== undefined)

/** Those whose reports name an email by a header line of ours. */
export const referringServices = smtpServices.filter(({ smtp }) => smtp.referenceHeader !== undefined)

/** By the name of an SMTP server, in small letters; null for any other server. */
export const findSmtpService = (host: string): SmtpMailService | null =>
  smtpServices.find(({ smtp }) =>
    smtp.hosts.some((known) => (typeof known === 'string' ? known === host : known.test(host))),
  ) ?? null

/** By its name; null if there is none, or it has no SMTP. */
export const findSmtpServiceByName = (name: string | null): SmtpMailService | null =>
  smtpServices.find((service) => service.name === name) ?? null

/** By the scheme of a relay's URL. */
export const findApiService = (scheme: string): ApiMailService | null =>
  apiServices.find(({ api, name }) => (api.scheme ?? name) === scheme) ?? null

export const findTokenService = (name: string): TokenService | null =>
  tokenServices.find((service) => service.name === name) ?? null

export const findEventService = (name: string): EventService | null =>
  eventServices.find((service) => service.name === name) ?? null

/** All ways by which reports come. */
export const reportSources: readonly ReportSource[] = ['mail', 'read', ...eventServices.map(({ name }) => name)]
