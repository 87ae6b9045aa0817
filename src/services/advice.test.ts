import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adviseOn, withAdvice } from './advice.ts'

const mistakes: [reply: string, advice: RegExp][] = [
  ['no token: invalid_client: AADSTS7000222: The provided client secret keys for app are expired', /make a new one/],
  ['no token: invalid_client: AADSTS7000215: Invalid client secret provided', /copy its Value, not its Secret ID/],
  ['no token: unauthorized_client: AADSTS700016: Application with identifier', /no application with the id/],
  ['no token: invalid_request: AADSTS90002: Tenant not found', /no such tenant/],
  ['no token: invalid_client: AADSTS700027: The certificate with identifier', /certificate in `key`/],
  ['no token: unauthorized_client: Client is unauthorized to retrieve access tokens', /domain-wide delegation/],
  ['no token: invalid_grant: Invalid JWT: Token must be a short-lived token', /clock of this machine and the key/],
  ['no token: invalid_grant: Token has been expired or revoked.', /withdrawn or has expired/],
  ['no token: invalid_grant: Not a valid email or user ID.', /mailbox does not exist/],
  ['no token: invalid_client', /client id or its secret/],
  ['535 5.7.3 Authentication unsuccessful', /New-ServicePrincipal/],
  ['535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled', /SMTP AUTH is off/],
  ['550 5.7.30 Basic authentication is not supported', /oauth=microsoft/],
  ['550 5.7.60 SMTP; Client does not have permissions to send as this sender', /nor an alias of it/],
  ['534 5.7.9 Application-specific password required', /app password/],
  ['535 5.7.8 Username and Password not accepted', /user or password is wrong/],
  ['535 5.7.8 Error: authentication failed: Invalid authentication mechanism', /this way to log in/],
  ['534 5.7.9 Authentication mechanism is too weak', /this way to log in/],
  ['550 5.7.1 <box>: Helo command rejected: Host not found', /POSTERN_SMTP_NAME/],
  ['550 5.4.5 Daily user sending limit exceeded', /daily limit/],
  ['554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException', /Microsoft’s sending limit/],
  ['550 5.7.705 Access denied, tenant has exceeded threshold', /blocked the tenant/],
  ['ERROR: the relay does not offer XOAUTH2', /does not accept tokens/],
  ['403 ErrorAccessDenied: Access is denied.', /Mail\.Send/],
  ['403 insufficientPermissions: Insufficient Permission', /gmail\.send/],
  ['400 failedPrecondition: Mail service not enabled', /Gmail is not turned on/],
  ['403 SignatureDoesNotMatch: The request signature we calculated', /secret access key/],
  ['403 AccessDenied: User is not authorized to perform `ses:SendEmail`', /ses:SendEmail/],
  ['403 validation_error: The acme.com domain is not verified.', /verify the sender/],
  ['429 daily_quota_exceeded: You have reached your daily email quota.', /quota/],
  ['401 10: The Server Token you provided was invalid', /server token/],
  ['ENOTFOUND: getaddrinfo ENOTFOUND mx.acme.con', /no such host/],
  ['DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate', /`ca`/],
]

for (const [reply, advice] of mistakes) test(`advice for ${reply}`, () => assert.match(adviseOn(reply) ?? '', advice))

test('an ordinary reply has no advice', () => {
  for (const reply of ['550 5.1.1 no such user', '421 4.3.2 busy', '']) {
    assert.equal(adviseOn(reply), null)
    assert.equal(withAdvice(reply), reply)
  }
  assert.equal(withAdvice('401 10: no'), '401 10: no (the server token is wrong)')
  assert.equal(
    withAdvice('ESOCKET: connect ECONNREFUSED 10.0.0.1:25'),
    'the connection was refused (ESOCKET: connect ECONNREFUSED 10.0.0.1:25)',
  )
})
