/** Amazon SES by SNS: messages signed by a certificate of our own, at a server with the name of SNS. */
import assert from 'node:assert/strict'
import { createSign, randomUUID, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { close, listen } from '../../src/web/http/listener.ts'
import { newAsk } from '../../src/web/reports/ask-service.ts'
import { newReportsListener } from '../../src/web/reports/reports-listener.ts'
import { readKeys } from '../support/provider-calls.ts'
import { relayTo, startTestService, testSettings, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const readTls = (name: string) => readFileSync(new URL(`../support/tls/${name}.pem`, import.meta.url), 'utf8')
const [cert, key] = [readTls('sns.cert'), readTls('sns.key')]
const topic = 'arn:aws:sns:eu-west-1:123456789012:postern-reports'
const host = 'https://sns.eu-west-1.amazonaws.com'
const certificate = `${host}/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem`

/** Stands where SNS would: it serves the certificate and confirms subscriptions. */
const asked: string[] = []
const sns = https.createServer({ cert, key }, ({ url = '' }, response) => {
  asked.push(url)
  if (url.endsWith('cafe.pem')) return void response.writeHead(302, { location: certificate }).end()
  if (url.endsWith('beef.pem')) return void response.end('x'.repeat(100_000))
  if (url.endsWith('fade.pem')) return void response.end('no certificate')
  if (url.includes('Token=broken')) return void response.writeHead(500).end()
  response.end(url.endsWith('.pem') ? cert : '<ConfirmSubscriptionResponse/>')
})
await new Promise<void>((resolve) => sns.listen(0, '127.0.0.1', resolve))
after(() => {
  sns.close()
  sns.closeAllConnections()
})

const relay = await startSmtpServer({ after })
const limits = { ...testSettings.limits, keyPerMinute: 1000, recipientPerHour: 100 }
const service = await startTestService({ after }, { relays: [relayTo(relay.port)], settings: { limits } })
const { store } = service
const refused: string[] = []
const start = async (scope: { after(end: () => Promise<void>): void }, known: typeof store = store) => {
  const listener = newReportsListener({
    store: known,
    emit: ({ kind }) => void refused.push(kind),
    keys: readKeys(`ses:${topic}`),
    sealRecipient: () => '',
    isStopping: () => false,
    ask: newAsk({ port: (sns.address() as AddressInfo).port, ca: cert }),
  })
  scope.after(() => close(listener, 0))
  return `${await listen(listener, { host: '127.0.0.1', port: 0 })}/reports/ses`
}
const url = await start({ after })

const signed = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
}
type Fields = Readonly<Record<string, string | undefined>>

/** A message as SNS writes and signs it. */
function newMessage(change: Fields = {}, by = key): Fields {
  const message: Fields = {
    Type: 'Notification',
    MessageId: randomUUID(),
    TopicArn: topic,
    Message: '{}',
    Timestamp: new Date(store.now()).toISOString(),
    SignatureVersion: '2',
    SigningCertURL: certificate,
    ...change,
  }
  const fields = message.Type === 'SubscriptionConfirmation' ? signed.SubscriptionConfirmation : signed.Notification
  const text = fields.flatMap((name) => (message[name] === undefined ? [] : [`${name}\n${message[name]}\n`])).join('')
  const signature = createSign(message.SignatureVersion === '1' ? 'sha1' : 'sha256').update(text)
  return { ...message, Signature: signature.sign(by, 'base64') }
}

const post = async (message: unknown, at = url) => {
  const answer = await fetch(at, {
    method: 'POST',
    headers: { 'content-type': 'text/plain; charset=UTF-8', 'x-amz-sns-message-type': 'Notification' },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  })
  return { status: answer.status, text: await answer.text() }
}

async function deliver(to: string) {
  const answer = await service.post(validBody({ to }, store.now()))
  const id = (answer.headers.get('email-id') ?? '') as EmailId
  await eventually(async () => (await store.findEmail(id))?.state === 'delivered')
  return { id, to, mail: { source: `bounces+${store.makeReference(id)}@acme.test`, destination: [to] } }
}

const shown = async (id: EmailId) => {
  const email = await store.findEmail(id)
  const reply = email?.trail.at(-1)?.reply?.text
  return [email?.state, email?.reason ?? '', email?.trail.at(-1)?.outcome, reply]
}
const isSuppressed = async (to: string) =>
  (await store.findSuppressions(store.nameRecipient(to as EmailAddress))).length > 0

const recipient = (to: string, more = {}) => [{ emailAddress: to, ...more }]
const gone = { action: 'failed', status: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 user unknown' }

for (const [name, version, kind] of [
  ['a notification of an identity', '1', 'notificationType'],
  ['an event of a configuration set', '2', 'eventType'],
] as const)
  test(`${name}: a bounce is recorded, and suppresses the recipient`, async () => {
    const email = await deliver(`gone${version}@example.com`)
    const bouncedRecipients = recipient(email.to, gone)
    const bounce = { bounceType: 'Permanent', bounceSubType: 'General', bouncedRecipients }
    const Message = JSON.stringify({ [kind]: 'Bounce', bounce, mail: email.mail })
    const message = newMessage({ Message, SignatureVersion: version, Subject: 'Amazon SES Email Event' })
    const answer = await post(message)
    assert.deepEqual([answer.status, answer.text], [200, '{"ok":true,"results":{"recorded":1}}'])
    assert.deepEqual(await shown(email.id), ['bounced', 'no_mailbox', 'bounced', '550 5.1.1 user unknown'])
    await eventually(() => isSuppressed(email.to))
    assert.match(
      (await post(message)).text,
      /"repeated":1|"known":1|"recorded":0|"results":/,
      'a repeat changes nothing',
    )
    assert.equal((await store.findEmail(email.id))?.trail.filter(({ outcome }) => outcome === 'bounced').length, 1)
  })

for (const [name, event, expected] of [
  [
    'a full mailbox',
    (to: string) => ({
      eventType: 'Bounce',
      bounce: { bounceType: 'Transient', bounceSubType: 'MailboxFull', bouncedRecipients: recipient(to) },
    }),
    ['bounced', 'mailbox_full', 'bounced', ''],
  ],
  [
    'an address on the list of the account',
    (to: string) => ({
      eventType: 'Bounce',
      bounce: { bounceType: 'Permanent', bounceSubType: 'OnAccountSuppressionList', bouncedRecipients: recipient(to) },
    }),
    ['bounced', 'relay_suppressed', 'bounced', ''],
  ],
  [
    'an automatic answer, which SES calls an undetermined bounce',
    (to: string) => ({
      eventType: 'Bounce',
      bounce: { bounceType: 'Undetermined', bounceSubType: 'Undetermined', bouncedRecipients: recipient(to) },
    }),
    ['delivered', '', 'delivered', '250 queued'],
  ],
  [
    'an automatic answer, which SES calls a bounce',
    (to: string) => ({
      eventType: 'Bounce',
      bounce: { bounceType: 'Transient', bounceSubType: 'General', bouncedRecipients: recipient(to) },
    }),
    ['delivered', '', 'delivered', '250 queued'],
  ],
  [
    'a complaint',
    (to: string) => ({
      notificationType: 'Complaint',
      complaint: { complainedRecipients: recipient(to), complaintFeedbackType: 'abuse' },
    }),
    ['complained', '', 'complained', undefined],
  ],
  [
    'a delivery',
    (to: string) => ({
      eventType: 'Delivery',
      delivery: { recipients: [to], smtpResponse: '250 2.6.0 Message received' },
    }),
    ['delivered', '', 'confirmed', undefined],
  ],
  [
    'a delay',
    (to: string) => ({
      eventType: 'DeliveryDelay',
      deliveryDelay: {
        delayType: 'MailboxFull',
        delayedRecipients: recipient(to, { status: '4.2.2', diagnosticCode: '452 4.2.2 full' }),
      },
    }),
    ['delivered', '', 'delayed', '452 4.2.2 full'],
  ],
  [
    'an email that SES rejects',
    () => ({ eventType: 'Reject', reject: { reason: 'Bad content' } }),
    ['bounced', 'policy', 'bounced', 'Bad content'],
  ],
] as const)
  test(`${name} is read`, async () => {
    const email = await deliver(`a${name.length}@example.com`)
    const Message = JSON.stringify({ ...event(email.to), mail: email.mail })
    assert.equal((await post(newMessage({ Message }))).status, 200)
    const [state, reason, outcome, reply] = await shown(email.id)
    assert.deepEqual([state, reason, outcome], expected.slice(0, 3))
    if (reply !== undefined && expected[3] !== undefined) assert.match(reply, new RegExp(expected[3]))
  })

test('opens, clicks and messages of no event are ignored', async () => {
  for (const Message of ['{"eventType":"Open","open":{}}', '{}', 'Successfully validated SNS topic', '[]', '"x"'])
    assert.equal((await post(newMessage({ Message }))).status, 200, Message)
})

test('the subscription of an allowed topic is confirmed, and asked for again until SNS has', async () => {
  const confirm = (token: string) =>
    newMessage({
      Type: 'SubscriptionConfirmation',
      Token: token,
      SubscribeURL: `${host}/?Action=ConfirmSubscription&TopicArn=${topic}&Token=${token}`,
    })
  assert.equal((await post(confirm('2336412f37'))).status, 200)
  assert.ok(asked.includes(`/?Action=ConfirmSubscription&TopicArn=${topic}&Token=2336412f37`))
  assert.equal((await post(confirm('broken'))).status, 503)
})

test('a confirmation goes nowhere but to SNS', async () => {
  const before = asked.length
  for (const SubscribeURL of [
    `${host}/?Action=DeleteTopic&TopicArn=${topic}`,
    `https://evil.test/?Action=ConfirmSubscription&Token=1`,
    `${host}.evil.test/?Action=ConfirmSubscription&Token=1`,
    `http://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=1`,
    `${host}@evil.test/?Action=ConfirmSubscription&Token=1`,
  ])
    await post(newMessage({ Type: 'SubscriptionConfirmation', Token: 'x', SubscribeURL }))
  assert.deepEqual(
    asked.slice(before).filter((path) => path.includes('Action')),
    [],
  )
})

const own = newMessage()
const forged: Readonly<Record<string, unknown>> = {
  'no JSON': '{',
  'no message': {},
  'another message': { ...own, Message: '{"eventType":"Bounce"}' },
  'another id': { ...own, MessageId: randomUUID() },
  'another time': { ...own, Timestamp: new Date(store.now() + 1000).toISOString() },
  'a subject that was not signed': { ...own, Subject: 'x' },
  'the other digest': { ...own, SignatureVersion: '1' },
  'a version that is not there': newMessage({ SignatureVersion: '3' }),
  'a version of a prototype': newMessage({ SignatureVersion: 'constructor' }),
  'a type of a prototype': newMessage({ Type: 'constructor' }),
  'no signature': { ...own, Signature: undefined },
  'a long signature': { ...own, Signature: 'A'.repeat(5000) },
  'a topic of somebody else': newMessage({ TopicArn: topic.replace('123456789012', '999999999999') }),
  'a topic of another name': newMessage({ TopicArn: `${topic}2` }),
  'a message of yesterday': newMessage({ Timestamp: new Date(store.now() - 3 * 3_600_000).toISOString() }),
  'a message of tomorrow': newMessage({ Timestamp: new Date(store.now() + 3 * 3_600_000).toISOString() }),
  'no time': newMessage({ Timestamp: 'soon' }),
  'a redirected certificate': newMessage({ SigningCertURL: `${host}/SimpleNotificationService-cafe.pem` }),
  'a huge certificate': newMessage({ SigningCertURL: `${host}/SimpleNotificationService-beef.pem` }),
  'no certificate': newMessage({ SigningCertURL: `${host}/SimpleNotificationService-fade.pem` }),
}
for (const [name, message] of Object.entries(forged))
  test(`forged: ${name}`, async () => {
    const answer = await post(message)
    const isMissing = ['a redirected certificate', 'a huge certificate'].includes(name)
    assert.equal(answer.status, isMissing ? 503 : 401, answer.text)
  })

test('forged: a certificate from anywhere but the host of SNS in the region of the topic is not even asked for', async () => {
  const before = asked.length
  for (const SigningCertURL of [
    'https://evil.test/SimpleNotificationService-0123.pem',
    'https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123.pem',
    'https://s3.amazonaws.com/bucket/SimpleNotificationService-0123.pem',
    `${host}.evil.test/SimpleNotificationService-0123.pem`,
    `${host}:8443/SimpleNotificationService-0123.pem`,
    `${host}@evil.test/SimpleNotificationService-0123.pem`,
    `${host}/SimpleNotificationService-0123.pem?x`,
    `${host}/../SimpleNotificationService-0123.pem`,
    `${host}/mine/SimpleNotificationService-0123.pem`,
    `${host}/SimpleNotificationService-0123.pem#x`,
    certificate.replace('https', 'http'),
    'file:///etc/passwd',
    '',
  ]) {
    const answer = await post(newMessage({ SigningCertURL }))
    assert.equal(answer.status, 401, SigningCertURL)
  }
  assert.equal(asked.length, before)
})

test('forged: a certificate that has ended', async (t) => {
  const later = Date.parse(new X509Certificate(cert).validTo) + 1000
  const at = await start({ after: (end) => t.after(end) }, { ...store, now: () => later })
  assert.equal((await post(newMessage({ Timestamp: new Date(later).toISOString() }), at)).status, 401)
})

test('forged: a signature of another key', async () => {
  const { generateKeyPairSync } = await import('node:crypto')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const by = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  assert.equal((await post(newMessage({}, by))).status, 401)
})

test('a certificate is asked for once, and strangers cannot have more than thirty asked for in a minute', async (t) => {
  const at = await start({ after: (end) => t.after(end) })
  const before = asked.length
  for (let n = 0; n < 3; n++) assert.equal((await post(newMessage(), at)).status, 200)
  assert.equal(asked.length - before, 1)
  for (let n = 0; n < 40; n++)
    await post({ ...newMessage(), SigningCertURL: `${host}/SimpleNotificationService-${n}fade.pem` }, at)
  assert.equal(asked.length - before, 30)
  assert.equal((await post(newMessage(), at)).status, 200, 'the known certificate still counts')
})

test('the certificate of the tests is valid for longer than they will be run', () => {
  assert.ok(Date.parse(new X509Certificate(cert).validTo) > Date.UTC(2100, 0))
})
