/** Reports as mail servers write them (RFC 3464). */

type ReportText = {
  /** The address that the report is sent to. */
  readonly to: string
  /** The address that failed. */
  readonly recipient: string
  readonly reply?: string
  readonly status?: string
}

export const writeReport = ({
  to,
  recipient,
  reply = '550 5.1.1 User unknown',
  status = '5.1.1',
}: ReportText): string =>
  [
    'Return-Path: <>',
    'From: Mail Delivery System <MAILER-DAEMON@mx.example.com>',
    `To: ${to}`,
    'Subject: Undelivered Mail Returned to Sender',
    'Auto-Submitted: auto-replied',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
    '',
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; mx.example.com',
    '',
    `Final-Recipient: rfc822; ${recipient}`,
    'Action: failed',
    `Status: ${status}`,
    `Diagnostic-Code: smtp; ${reply}`,
    '',
    '--b--',
    '',
  ].join('\r\n')
