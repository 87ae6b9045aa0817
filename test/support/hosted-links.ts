/** A service whose apps send every link through its own pages, and the emails that it captures. */
import assert from 'node:assert/strict'
import type { AppSettings } from '../../src/domain/app/settings.ts'
import { newSender, startTestService, testSettings, validBody } from './service.ts'
import type { Scope } from './temporary.ts'
import { eventually } from './wait.ts'

export const linksBaseUrl = 'https://links.acme.test'

export type HostedEmail = { url: string; text: string; html: string }

export async function startHostedLinks(scope: Scope) {
  const service = await startTestService(scope, { linksBaseUrl, settings: { hostedLinks: 'always' } })
  const local = (url: string) => url.replace(linksBaseUrl, service.urls.links ?? '')
  let serial = 0
  return {
    service,
    /** Posts an email and returns it as the inbox shows it. */
    async receive(body: Record<string, unknown>, key = service.key): Promise<HostedEmail> {
      const to = `hosted${serial++}@example.com`
      const answer = await service.post(validBody({ ...body, to }, service.store.now()), {
        authorization: `Bearer ${key}`,
      })
      assert.equal(answer.status, 202, JSON.stringify(answer.body))
      return eventually(async () => {
        const response = await fetch(`${service.urls.inbox}/api/inbox/latest?to=${to}`)
        return response.status === 200 ? ((await response.json()) as HostedEmail) : null
      })
    },
    /** The address of a page without the proxy. */
    local,
    /** A POST sends an empty form, as browsers do. */
    visit: (url: string, method = 'GET') =>
      fetch(local(url), {
        ...{ method, redirect: 'manual' },
        ...(method === 'POST' && { body: new URLSearchParams() }),
      }),
    newApp: (slug: string, change: Partial<AppSettings> = {}) =>
      newSender(service, slug, { ...testSettings, hostedLinks: 'always', ...change }),
  }
}
