/** A service whose apps send every link through its own pages, and the emails that it captures. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { AppSettings } from '../../src/domain/app/settings.ts'
import { newSender, startTestService, testSettings, validBody } from './service.ts'
import type { Scope } from './temporary.ts'
import { eventually } from './wait.ts'

/** The headers of a browser whose person pressed a button on our page. */
export const pressedHeaders = {
  'sec-fetch-site': 'same-origin',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
} as const

/** `fetch` sends headers of its own that say it is no navigation, so this is a plain request. */
export async function press(
  url: string,
  headers: Readonly<Record<string, string>> = pressedHeaders,
): Promise<Response> {
  const type = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' }
  const sent = request(url, { method: 'POST', headers: { ...type, ...headers } })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  const given = Object.entries(answer.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')])
  return new Response(answer.statusCode === 303 ? null : Buffer.concat(chunks), {
    status: answer.statusCode ?? 0,
    headers: Object.fromEntries(given) as Record<string, string>,
  })
}

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
    /** A POST sends an empty form, as browsers do when somebody presses the button. */
    visit: (url: string, method = 'GET', headers?: Readonly<Record<string, string>>) =>
      method === 'POST' ? press(local(url), headers) : fetch(local(url), { method, redirect: 'manual' }),
    newApp: (slug: string, change: Partial<AppSettings> = {}) =>
      newSender(service, slug, { ...testSettings, hostedLinks: 'always', ...change }),
  }
}
