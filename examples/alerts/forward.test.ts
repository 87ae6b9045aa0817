/** The forwarder of alerts as an operator runs it: PagerDuty and sendmail are stand-ins on this machine. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { startApiServer } from '../../test/support/api-server.ts'
import { atEnd, temporaryFolder } from '../../test/support/temporary.ts'

const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`

test('an urgent alert opens and resolves an incident, every alert is mailed, and nothing unsigned is forwarded', async (t) => {
  const pager = await startApiServer(
    t,
    (_asked, response, count) => void response.writeHead(count === 2 ? 500 : 202).end(),
  )
  const folder = temporaryFolder(t)
  const [sendmail, sent] = [join(folder, 'sendmail'), join(folder, 'sent')]
  writeFileSync(sendmail, `#!/bin/sh\ncat >> ${sent}\n`)
  chmodSync(sendmail, 0o755)
  const env = { PATH: process.env.PATH ?? '', PORT: '0', POSTERN_ALERTS_SECRET: secret, PAGERDUTY_KEY: 'R0' }
  const child = spawn(process.execPath, [fileURLToPath(new URL('forward.mjs', import.meta.url))], {
    env: { ...env, PAGERDUTY_URL: `${pager.url}/enqueue`, SENDMAIL: sendmail, MAIL_TO: 'ops@example.com' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  atEnd(t, () => void child.kill())
  const [line] = await once(child.stdout, 'data')
  const url = `http://127.0.0.1:${/\d+/.exec(String(line))?.[0]}/`
  let alerts = 0
  const post = async (
    type: string,
    urgent: boolean,
    { key = secret, apps = [] as string[], id = `wh_${alerts++}` } = {},
  ) => {
    const message = 'The relay answers “451 <acme> & Ä”'
    const data = { kind: 'no_relay', subject: null, urgent, apps, message, console: 'https://console.acme.test' }
    const body = JSON.stringify({ type, timestamp: '', text: 'Postern: &lt;', data })
    const at = new Date()
    const headers = {
      ...{ 'webhook-id': id, 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)) },
      'webhook-signature': new Webhook(key).sign(id, at, body),
    }
    return (await fetch(url, { method: 'POST', headers, body })).status
  }
  assert.equal(await post('alert.began', true, { key: `whsec_${Buffer.alloc(32, 4).toString('base64')}` }), 401)
  assert.deepEqual(pager.asked, [])
  assert.equal(await post('alert.began', true), 204)
  assert.equal(await post('alert.ended', true, { id: 'wh_again' }), 500, 'PagerDuty failed: Postern sends it again')
  assert.equal(await post('alert.ended', true, { id: 'wh_again' }), 204)
  assert.equal(await post('alert.began', false), 204)
  const events = pager.asked.map(({ body }) => JSON.parse(body))
  assert.deepEqual(
    events.map((event) => [event.event_action, event.dedup_key]),
    [
      ['trigger', 'postern no_relay'],
      ['resolve', 'postern no_relay'],
      ['resolve', 'postern no_relay'],
    ],
  )
  const mails = readFileSync(sent, 'utf8')
  assert.equal(mails.match(/^To: ops@example\.com$/gm)?.length, 3, 'also while PagerDuty fails, and once')
  assert.match(mails, /^The relay answers “451 <acme> & Ä”\n\nhttps:\/\/console\.acme\.test$/m)
  pager.asked.splice(0)
  await post('alert.began', true, { apps: ['acme', 'globex'] })
  await post('alert.ended', false, { apps: ['acme'] })
  const byApp = pager.asked.map(({ body }) => JSON.parse(body)).map((event) => [event.event_action, event.dedup_key])
  assert.deepEqual(byApp.toSorted(), [
    ['resolve', 'postern no_relay acme'],
    ['trigger', 'postern no_relay acme'],
    ['trigger', 'postern no_relay globex'],
  ])
  writeFileSync(sendmail, '#!/bin/sh\nexit 1\n')
  assert.equal(await post('alert.began', false), 500, 'sendmail failed')
  assert.equal(await post('alert.ended', true), 500, 'and it still runs')
})
