/**
 * Sentences that a page shows after a change. The address names one, so that a reload shows it again and
 * stores nothing.
 */

const notices = {
  app_created: 'The app was created. Create its first key now.',
  app_disabled: 'The app is disabled: its keys are refused, and its mail is held.',
  app_suspended: 'The app is suspended. Only an admin of the whole service can enable it again.',
  app_enabled: 'The app is active again.',
  app_deleted: 'The app was deleted. Its remaining mail is being cancelled.',
  saved: 'Saved. It takes effect with the next request.',
  link_known: 'This entry was already allowed. Nothing was changed.',
  key_revoked: 'The key was revoked. It is refused from now on.',
  email_retried: 'The email is due now. It is sent as soon as a relay accepts it.',
  email_cancelled: 'The email was cancelled, and its content deleted.',
  all_retried: 'All deferred emails are due now, except those suspected of crashing a worker.',
  all_retried_more: 'Many emails are due now. Press “Retry … deferred…” again for the rest.',
  suppressed: 'The recipient is suppressed: mail to it is not sent.',
  suppression_removed: 'The suppression was ended. The person must ask the app for a new email.',
  suppressions_cleared: 'The suppressions were cleared. Mail to these recipients is sent again.',
  suppressions_cleared_more: 'Many suppressions were cleared. Clear again for the rest.',
  domain_proved: 'The domain was added. You can now use addresses in it.',
  key_added: 'Key added. Publish its record, then activate it.',
  key_activated: 'Key activated. It signs the mail within 30 s.',
  key_removed: 'Key removed. Remove its record from DNS, too.',
  webhook_queued: 'The test message was queued. Its result appears below once the receiver has answered.',
  webhook_sent: 'The message is sent at once. The result appears below once the receiver has answered.',
  token_revoked: 'The token was revoked. It is refused from now on.',
  transport_saved: 'The transport was saved. Check it, then choose it in the settings of an app.',
  transport_removed: 'The transport was removed.',
  person_disabled: 'The person is disabled: sessions and links have ended.',
  person_enabled: 'The person may sign in again.',
  person_changed: 'Saved. It takes effect with the next request.',
  link_ended: 'The link was ended. It signs nobody in.',
  session_ended: 'The session was ended.',
  sessions_ended: 'All other sessions were ended.',
  times_changed: 'Saved. It takes effect on all pages.',
  passkey_added: 'The passkey was added. You can now sign in with it.',
  passkey_removed: 'The passkey was removed.',
} as const

export type Notice = keyof typeof notices

export const findNotice = (name: string | null): string | null =>
  name !== null && Object.hasOwn(notices, name) ? notices[name as Notice] : null
