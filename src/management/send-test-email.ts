/** Queues a test email for an app, through the same intake as a request over HTTP. */

import type { AllowedUrl } from '../domain/app/allowed-url.ts'
import type { App } from '../domain/app/app.ts'
import { appPolicy } from '../domain/app/app-policy.ts'
import type { EmailId } from '../domain/id.ts'
import { type Rejection, refusals } from '../domain/request/rejection.ts'
import { acceptEmail } from '../intake/accept-email.ts'
import { AppPolicyCache } from '../intake/app-policy-cache.ts'
import type { LinkHost } from '../intake/judge-request.ts'
import type { Store } from '../store/store.ts'
import { createKey } from './create-key.ts'
import { done, type Result, refuse } from './result.ts'

const lifeMs = 900_000
/** The key of a test email is revoked at once; if that fails, it expires by itself. */
const keyMs = 600_000

export async function sendTestEmail(
  { store, links }: { store: Store; links: LinkHost },
  app: App,
  to: string,
): Promise<Result<EmailId>> {
  const url = testUrl(app)
  if (url === null) {
    const message = `the app ${app.slug} allows no links yet; run: postern app update ${app.slug} --allow-url https://…`
    return refuse('invalid', message)
  }
  const created = await createKey(store, app, { name: 'test email', expiresAt: store.now() + keyMs })
  if (!created.ok) return created
  const { key, record } = created.value
  try {
    const expiresAt = new Date(store.now() + lifeMs).toISOString()
    const body = JSON.stringify({ to, type: 'magic_link', url, expiresAt })
    const deps = {
      store,
      links,
      policies: new AppPolicyCache(),
      waitIfLate: () => undefined,
      onQueued: () => {},
    }
    const answer = await acceptEmail(deps, {
      authorization: `Bearer ${key}`,
      idempotencyKey: undefined,
      body: { contentType: 'application/json', contentEncoding: undefined, bytes: Buffer.from(body) },
    })
    if ('rejection' in answer) return refuse('invalid', textOf(answer.rejection))
    return done(answer.emailId)
  } finally {
    await store.revokeKey(record.id)
  }
}

function textOf({ code, message, issues = [] }: Rejection): string {
  const details = issues.map((issue) => `${issue.field}: ${issue.message}`)
  return [`the test email was refused (${code}): ${message ?? refusals[code].message}`, ...details].join(
    '\n  ',
  )
}

/** A link that the app allows; it leads nowhere. Null if the app allows none. */
function testUrl(app: App): string | null {
  const { allowedUrls, appSchemes, allowLocalhost } = appPolicy(app)
  const [entry = appSchemes[0]] = allowedUrls
  if (entry !== undefined) return `${withinEntry(entry)}?token=test-email`
  return allowLocalhost ? 'http://localhost/?token=test-email' : null
}

function withinEntry({ scheme, authority, wildcard, path, prefix }: AllowedUrl): string {
  const below = prefix ? `${path ?? '/'}test` : (path ?? '/test')
  return `${scheme}://${wildcard ? 'test.' : ''}${authority ?? 'test'}${below}`
}
