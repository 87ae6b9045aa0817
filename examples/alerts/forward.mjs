/**
 * Receives Postern's alerts on this machine: urgent ones open and resolve incidents in PagerDuty, and all of
 * them are sent by email through `sendmail`. Set POSTERN_ALERTS_SECRET, and PAGERDUTY_KEY or MAIL_TO or both.
 */
import { spawn } from 'node:child_process'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const { POSTERN_ALERTS_SECRET = '', PAGERDUTY_KEY, MAIL_TO, PORT = '9000' } = process.env
const { PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue', SENDMAIL = '/usr/sbin/sendmail' } = process.env
const key = Buffer.from(POSTERN_ALERTS_SECRET.replace(/^whsec_/, ''), 'base64')
if (key.length < 24) throw new Error('POSTERN_ALERTS_SECRET must be the secret that Postern has')

const bytesMax = 65_536
const toleranceS = 300

const server = createServer(async (request, response) => {
  try {
    const body = await readBody(request)
    if (body === null || !isSigned(request.headers, body)) return response.writeHead(401).end()
    await forward(request.headers['webhook-id'], JSON.parse(body.toString()))
    response.writeHead(204).end()
  } catch (error) {
    console.error(error)
    response.writeHead(500).end() // Postern sends it again
  }
})
server.listen(Number(PORT), '127.0.0.1', () => console.log(`listening on ${server.address().port}`))

/** Null if it is too long. */
async function readBody(request) {
  const chunks = []
  for await (const chunk of request) {
    chunks.push(chunk)
    if (chunks.reduce((sum, { length }) => sum + length, 0) > bytesMax) return null
  }
  return Buffer.concat(chunks)
}

/** As Standard Webhooks says. */
function isSigned(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': given = '' } = headers
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < toleranceS)) return false
  const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
  const [own, theirs] = [`v1,${hmac}`, given].map((text) => Buffer.from(text))
  return own.length === theirs.length && timingSafeEqual(own, theirs)
}

/** The last emails, by the ids of their alerts: one that PagerDuty refuses comes again every minute. */
const mailed = new Set()
const mailedMax = 1000

/** One that fails does not stop the other; Postern then sends the alert again. */
async function forward(id, { type, data }) {
  const isEnd = type === 'alert.ended'
  const wanted = [
    ...(PAGERDUTY_KEY !== undefined && (data.urgent || isEnd)
      ? namesOf(data).map((name) => page(name, isEnd, data))
      : []),
    ...(MAIL_TO !== undefined && !mailed.has(id) ? [mail(data).then(() => noteMailed(id))] : []),
  ]
  const failed = (await Promise.allSettled(wanted)).filter(({ status }) => status === 'rejected')
  if (failed.length > 0) throw failed[0].reason
}

function noteMailed(id) {
  mailed.add(id)
  if (mailed.size > mailedMax) mailed.delete(mailed.values().next().value)
}

/** An incident for each app: an alert may begin for several, and end for each by itself. */
const namesOf = ({ apps, kind, subject }) =>
  (apps.length === 0 ? [''] : apps).map((app) => ['postern', kind, subject, app].filter(Boolean).join(' '))

async function page(name, isEnd, { message }) {
  const answer = await fetch(PAGERDUTY_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      routing_key: PAGERDUTY_KEY,
      event_action: isEnd ? 'resolve' : 'trigger',
      dedup_key: name,
      payload: { summary: message.slice(0, 1024), source: 'postern', severity: 'critical' },
    }),
    signal: AbortSignal.timeout(8000),
  })
  if (!answer.ok) throw new Error(`PagerDuty answered ${answer.status}`)
}

function mail({ message: text, console: address }) {
  const message = [
    `To: ${MAIL_TO}`,
    'Subject: Postern alert',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    '',
    `${text}\n${address === null ? '' : `\n${address}\n`}`,
  ].join('\n')
  return new Promise((resolve, reject) => {
    const child = spawn(SENDMAIL, ['-i', '-t'], { stdio: ['pipe', 'ignore', 'inherit'] })
    child.once('error', reject)
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`sendmail ended with ${code}`))))
    child.stdin.on('error', () => {}) // it ended early, and its exit code says so
    child.stdin.end(message)
  })
}
