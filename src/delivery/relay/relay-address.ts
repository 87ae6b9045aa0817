/** Where a relay is, and how to prove who sends: an SMTP server or a mail API. */
import type { ApiAddress } from './http/mail-api.ts'
import type { SmtpAddress } from './smtp/connect.ts'

export type RelayAddress = SmtpAddress | ApiAddress
