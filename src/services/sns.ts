/**
 * Messages of Amazon SNS, by which SES reports (docs.aws.amazon.com/sns). They are signed by a certificate
 * that each message names. Anybody can have a topic and get messages signed, so only topics count that an
 * operator has given, and a certificate counts only from SNS's own host in the region of the topic.
 */
import { type KeyObject, verify, X509Certificate } from 'node:crypto'
import { hourMs } from '../domain/duration.ts'
import { parseJson } from '../domain/request/email-request.ts'
import { type Ask, type Proof, TryAgain } from './event-proof.ts'
import { type JsonFields, toFields } from './json-fields.ts'

const topicShape = /^arn:aws(-cn|-us-gov)?:sns:([a-z]{2,4}(?:-[a-z]{2,9}){1,3}-\d{1,2}):\d{12}:[\w-]{1,256}(?:\.fifo)?$/

/** SNS repeats a message for an hour. */
const recentMs = 2 * hourMs
const signatureMax = 1024

/** The fields of each type that are signed, in this order. */
const ofConfirmation = ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
const signedFields: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['Notification', ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']],
  ['SubscriptionConfirmation', ofConfirmation],
  ['UnsubscribeConfirmation', ofConfirmation],
])
/** By the version of the signature. */
const digests: ReadonlyMap<unknown, string> = new Map([
  ['1', 'sha1'],
  ['2', 'sha256'],
])

/** SNS's own host in the region of a topic, as an origin. */
function originOf(topic: string): string {
  const [, part, region] = topicShape.exec(topic) ?? []
  return `https://sns.${region}.amazonaws.com${part === '-cn' ? '.cn' : ''}`
}

/** Whether a URL is at SNS's own host and has a path or query of this shape. */
const isAt = (url: unknown, topic: string, rest: RegExp): url is string =>
  typeof url === 'string' && url.startsWith(`${originOf(topic)}/`) && rest.test(url.slice(originOf(topic).length))

const certificatePath = /^\/SimpleNotificationService-[\da-f]{1,64}\.pem$/
const confirmationQuery = /^\/\?Action=ConfirmSubscription&[\w=&:%.~-]{1,2000}$/

export const snsTopic: Proof<string> = {
  name: 'ses',
  form: 'ses:ARN, the ARN of the SNS topic to which SES publishes',
  readKey: (value) => (topicShape.test(value) ? value : null),
  async proves({ body, nowMs, ask }, topic) {
    const message = toFields(parseJson(body))
    const { SignatureVersion, Signature, SigningCertURL, Timestamp, TopicArn, Type } = message
    const fields = signedFields.get(Type)
    const digest = digests.get(SignatureVersion)
    // Nothing is asked for a message of a topic that is not ours.
    if (TopicArn !== topic || fields === undefined || digest === undefined) return false
    if (!(Math.abs(Date.parse(String(Timestamp)) - nowMs) <= recentMs)) return false
    if (typeof Signature !== 'string' || Signature.length > signatureMax) return false
    if (!isAt(SigningCertURL, topic, certificatePath)) return false
    const pem = await ask(SigningCertURL)
    if (pem === null) throw unreachable(topic)
    const key = readCertificate(pem, nowMs)
    const signed = fields.flatMap((name) => (typeof message[name] === 'string' ? [name, message[name]] : []))
    const text = signed.map((line) => `${line}\n`).join('')
    return key !== null && verify(digest, Buffer.from(text), key, Buffer.from(Signature, 'base64'))
  },
}

/** The key of a certificate in PEM; null for anything else, and for one that is not valid now. */
function readCertificate(pem: string, nowMs: number): KeyObject | null {
  try {
    const { publicKey, validFrom, validTo } = new X509Certificate(pem)
    const isValid = Date.parse(validFrom) <= nowMs && nowMs < Date.parse(validTo)
    return isValid && publicKey.asymmetricKeyType === 'rsa' ? publicKey : null
  } catch {
    return null
  }
}

/**
 * The event in a proven message; null if it has none. The first message of a topic asks for a confirmation,
 * which this gives: the operator has allowed the topic.
 */
export async function openSns({ Message, SubscribeURL, TopicArn, Type }: JsonFields, ask: Ask): Promise<unknown> {
  if (Type === 'Notification') return typeof Message === 'string' ? parseJson(Buffer.from(Message)) : undefined
  if (Type === 'SubscriptionConfirmation' && isAt(SubscribeURL, String(TopicArn), confirmationQuery))
    if ((await ask(SubscribeURL)) === null) throw unreachable(String(TopicArn))
  return undefined
}

/** SNS repeats a message that is answered with 503, and none that is answered with 4xx. */
const unreachable = (topic: string): TryAgain =>
  new TryAgain(`${originOf(topic)} did not answer: allow https to this host, or set HTTPS_PROXY`)
