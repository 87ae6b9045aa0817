/**
 * Replies of real servers, as providers' pages and their users' reports have them, with other names.
 * `ada@example.com` is the recipient, and `auth@acme.test` the sender.
 */

/** A relay refuses the account, the sender, its address or the rate: another relay could send the email. */
export const accountReplies = [
  // Amazon SES
  '454 Throttling failure: Daily message quota exceeded.',
  '454 Throttling failure: Maximum sending rate exceeded.',
  '554 Message rejected: Sending paused for this account. For more information, please check the inbox of the email address associated with your AWS account.',
  '554 Message rejected: Email address is not verified. The following identities failed the check in region EU-WEST-1: ada@example.com',
  '554 Access denied: User `arn:aws:iam::1:user/mail` is not authorized to perform `ses:SendRawEmail` on resource',
  // SendGrid
  '451 You have exceeded your messaging limits',
  '550 The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved.',
  '554 5.7.1 Maximum credits exceeded',
  // Mailgun
  '421 Domain sandbox1.mailgun.org is not allowed to send: Sandbox subdomains are for test purposes only. Please add your own domain or add the address to authorized recipients in Account Settings.',
  '550 5.7.1 Domain acme.test is not allowed to send: The domain is unverified and requires DNS configuration.',
  '420 4.7.1 Domain acme.test is rate-limited: 100 messages per hour',
  // Postmark, Resend, Brevo, MailerSend
  '554 5.7.1 While your account is pending approval, all recipient addresses must share the same domain as the From address.',
  '450 You can only send testing emails to your own email address (owner@acme.test). To send emails to other recipients, please verify a domain.',
  '525 5.7.1 Unauthorized IP address',
  '502 5.7.0 Your SMTP account is not yet activated. Please contact us',
  '450 4.2.3 #MS42225 Trial accounts can only send emails to the administrator’s email',
  // Google and Microsoft
  '550 5.4.5 Daily user sending limit exceeded. For more information on Gmail sending limits go to the help',
  '421 4.7.28 Gmail has detected an unusual rate of mail originating from your IP address',
  '550 5.7.1 Invalid credentials for relay [192.0.2.1]. The IP address you have registered does not match',
  '550 5.7.60 SMTP; Client does not have permissions to send as this sender',
  '554 5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException.MapiExceptionSendAsDenied',
  '550 5.1.8 Access denied, bad outbound sender',
  '550 5.1.90 Your message can’t be sent because you’ve reached your daily limit for message recipients',
  '432 4.3.2 Concurrent connections limit exceeded',
  '451 4.7.500 Server busy. Please try again later from [192.0.2.1]',
  '550 5.7.64 TenantAttribution; Relay Access Denied SMTP',
  // Zoho
  '554 5.1.8 Email Outgoing Blocked.',
  '550 5.4.6 Unusual sending activity detected. Please try after sometime.',
  '553 Relaying disallowed as auth@acme.test',
  // cPanel, Exim, Postfix, Sendmail, qmail, hosting providers
  '550 Domain acme.test has exceeded the max emails per hour (100/100 (100%)) allowed. Message discarded.',
  '550 relay not permitted',
  '550 Sender verify failed',
  '554 5.7.1 <ada@example.com>: Relay access denied',
  '554 5.7.1 <unknown[192.0.2.1]>: Client host rejected: Access denied',
  '553 5.7.1 <auth@acme.test>: Sender address rejected: not owned by user acme',
  '450 4.7.1 <ada@example.com>: Recipient address rejected: Policy Rejection: message quota exceeded for this hour',
  '550 5.7.1 <ada@example.com>... Relaying denied',
  '553 sorry, that domain isn’t in my list of allowed rcpthosts (#5.7.1)',
  '550 Sender address is not allowed.',
  '554 Transaction failed. Reject due to policy restrictions.',
  '550 User acme@acme.test has exceeded its 24-hour sending limit',
  '452 4.5.3 Your account has sent too many messages in 24 hours',
  '550 5.7.1 Service unavailable; client [192.0.2.1] blocked using a list',
  '554 5.7.0 Your message could not be sent. The limit on the number of allowed outgoing messages was exceeded',
  '550 Message rejected: the account is suspended',
  '451 4.3.0 Mail server temporarily rejected message.',
  '554 Service temporarily suspended',
  '421 4.3.2 Service shutting down',
]

/** A receiver refuses its recipient, and the relay passes that on. */
export const receiverReplies = [
  '550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient’s email address for typos',
  '550 5.2.1 The email account that you tried to reach is disabled.',
  '550 The account you tried to reach is disabled',
  '552 5.2.2 The email account that you tried to reach is over quota and inactive.',
  '452 4.2.2 The recipient’s inbox is out of storage space.',
  '450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages from being delivered.',
  '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup',
  '550 5.4.1 Recipient address rejected: Access denied.',
  '554 delivery error: dd This user doesn’t have a yahoo.com account',
  '552 1 Requested mail action aborted, mailbox not found',
  '550 Requested action not taken: mailbox unavailable',
  '550 5.1.1 <ada@example.com>: Recipient address rejected: User unknown in virtual mailbox table',
  '550 Message was not accepted -- invalid mailbox. Local mailbox ada@example.com is unavailable: user not found',
  '550 User not found: ada@example.com',
  '550 No such person at this address.',
  '550 #5.1.0 Address rejected.',
  '550 Invalid Recipient - see the help pages',
  '550 Mailbox not found',
  '550 No Such User Here',
  '550 unknown user',
  '551 User not local; please try another path',
  '550 Mailbox disabled',
  '550 recipient rejected',
  '550 Unrouteable address',
  '550 5.1.2 Host or domain name not found. Name service error for name=example.com type=MX: Host not found',
  '553 5.1.3 Bad recipient address syntax',
  '556 5.1.10 Recipient address has null MX',
  '450 4.2.0 <ada@example.com>: Recipient address rejected: Greylisted, see the help',
  '451 4.7.1 Greylisting in action, please come back later',
  '550 5.7.13 User account disabled',
  '554 30 Sorry, your message to ada@example.com cannot be delivered. This mailbox is disabled (554.30).',
  '550 Address is on the suppression list for your account',
]
