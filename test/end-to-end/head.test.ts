/** HEAD answers wherever GET does, alike but for the body: monitors and link scanners send it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestService } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

test('HEAD has the status and the headers of GET, and no body', async (t) => {
  const service = await startTestService(t, { linksBaseUrl: 'https://links.example.com' })
  const { console, links, ops } = service.urls
  const addresses = [
    ...['/livez', '/readyz', '/metrics', '/none'].map((path) => `${ops}${path}`),
    `${links}/acme/none`,
    ...['/v1/status', '/v1/openapi.json', '/sign-in', '/', '/emails', '/api/inbox'].map((path) => `${console}${path}`),
  ]
  for (const address of addresses) {
    const [get, head] = await Promise.all(
      ['GET', 'HEAD'].map(async (method) => {
        const answer = await fetch(address, { method, redirect: 'manual' })
        return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() }
      }),
    )
    assert.deepEqual(head, { ...get, text: '' }, address)
  }
  const streams = await fetch(`${console}/live?topic=service`, { method: 'HEAD' })
  assert.equal(streams.status, 404)
  await service.store.close()
  await eventually(async () => (await fetch(`${ops}/readyz`, { method: 'HEAD' })).status === 503)
})
