/** A call of Supabase's hook, and the instructions for setting it up. */
import type { PostingHook } from './auth-hook.ts'

const hash = 'b59a0b2a5a3a5a1e4fa8a4e0a8ad5b5a2d0a1c7c64b9b4d1a0f1e2d3'
const currentHash = '7c1f6d0e9b8a4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f'

/** As `EmailData` and `models.User` are written; a change of address is a secure one. */
export function sampleSupabase(kind: string): object {
  const changes = kind === 'email_change'
  const says = !kind.endsWith('_notification')
  const at = '2026-08-20T12:00:00.000000Z'
  return {
    metadata: { uuid: '8d2f0a52-6f5e-4a55-9d5f-0f6b1c9a7e11', time: at, name: 'send-email' },
    user: {
      id: '8484b834-f29e-4af2-bf42-80644d154f76',
      aud: 'authenticated',
      role: 'authenticated',
      email: 'someone@example.com',
      phone: '',
      ...(changes ? { new_email: 'somebody@example.com', email_change_sent_at: at } : {}),
      app_metadata: { provider: 'email', providers: ['email'] },
      user_metadata: { email: 'someone@example.com', email_verified: false, locale: 'de' },
      identities: [],
      created_at: at,
      updated_at: at,
      is_anonymous: false,
    },
    email_data: {
      token: says ? '246813' : '',
      token_hash: says ? hash : '',
      redirect_to: says ? 'https://app.example.com/welcome' : '',
      email_action_type: kind,
      site_url: 'https://auth.example.com',
      token_new: changes ? '135792' : '',
      token_hash_new: changes ? currentHash : '',
      old_email: kind === 'email_changed_notification' ? 'former@example.com' : '',
      old_phone: '',
      provider: '',
      factor_type: '',
    },
  }
}

export const setUpSupabase: PostingHook['setUp'] = ({ url, secret }) => {
  const [uri, secrets] = [url, secret ?? 'v1,whsec_…'].map((text) => JSON.stringify(text))
  return [
    {
      text: 'In the Supabase dashboard, under Authentication, Hooks, add the "Send Email" hook with the type HTTPS and this address.',
      block: url,
    },
    {
      text: 'Give it this secret. If the dashboard makes one instead, give that one to Postern.',
      block: secret ?? 'v1,whsec_…',
    },
    {
      place: 'instead',
      text: 'With supabase/config.toml. While you replace a secret, write the old and the new one with | between them.',
      block: `[auth.hook.send_email]\nenabled = true\nuri = ${uri}\nsecrets = ${secrets}`,
    },
    {
      place: 'instead',
      text: 'If you host Supabase yourself: with these variables. The secrets are written as in config.toml.',
      block: `GOTRUE_HOOK_SEND_EMAIL_ENABLED=true\nGOTRUE_HOOK_SEND_EMAIL_URI=${uri}\nGOTRUE_HOOK_SEND_EMAIL_SECRETS=${secrets}`,
    },
    {
      place: 'postern',
      text: 'Set what the links open: the verify URL of the project, with hosted links on for this app.',
      block: 'https://REF.supabase.co/auth/v1/verify',
    },
    {
      place: 'postern',
      text: 'Or set a page of the app that calls verifyOtp with the parameter token as token_hash.',
    },
    {
      place: 'postern',
      text: 'Supabase does not send how long a link lives. If "Email OTP expiration" of the project is not 3600 seconds, set it here too. To show codes, allow them for this app.',
    },
  ]
}
