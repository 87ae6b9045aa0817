/** Auth servers that post to an app: listed, connected by a secret, and checked. */
import { Type } from 'typebox'
import { parseAllowedUrl } from '../../domain/app/allowed-entry.ts'
import type { App } from '../../domain/app/app.ts'
import { appPolicy } from '../../domain/app/app-policy.ts'
import { hashDeliveryKey, newAuthHookSecret } from '../../domain/app/delivery-key.ts'
import { type AuthHook, stepPlaces } from '../../domain/auth-hooks/auth-hook.ts'
import { unknownAuthHooksUrl, unknownSubmissionUrl } from '../../domain/auth-hooks/auth-hook-settings.ts'
import { authHookNames, findSystem, systems } from '../../domain/auth-hooks/auth-hooks.ts'
import { hasEnded } from '../../domain/bearer.ts'
import { type Parsed, parsed, refused } from '../../domain/parsed.ts'
import { purposes } from '../../domain/request/email-content.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { refusals } from '../../domain/request/rejection.ts'
import { judgeMessages, readMessages } from '../../intake/accept-auth-hook.ts'
import type { JudgeContext, Judgement } from '../../intake/judge-request.ts'
import { mailReader } from '../../intake/mail-reader.ts'
import type { Management } from '../context.ts'
import { keyNameTaken, tooManyKeys } from '../keys/keys.ts'
import { appNotFound } from '../operation/find-target.ts'
import { daySeconds, graceField } from '../operation/name-fields.ts'
import { always, operation } from '../operation/operation.ts'
import { done, fail, invalid, type Result } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { iso, KeyResource, presentKey } from '../resources.ts'

const systemName = () => Type.Enum([...authHookNames])

const StepResource = closed({
  text: Type.String(),
  block: Type.Optional(Type.String({ description: 'To be copied as it is.' })),
  place: Type.Optional(
    Type.Enum([...stepPlaces], {
      description:
        '`postern`: a setting here. `instead`: another way for the steps before. Absent: at the auth server.',
    }),
  ),
})

type Addresses = Pick<Management, 'authHooksUrl' | 'submissionUrl'>

const authHookUrl = ({ authHooksUrl, submissionUrl }: Addresses, { auth, name }: AuthHook, { slug }: App): string =>
  auth.kind === 'login'
    ? (submissionUrl ?? unknownSubmissionUrl)
    : `${authHooksUrl ?? unknownAuthHooksUrl}/${name}/${slug}`

const placeOf = ({ settings, slug }: App) => ({ slug, from: settings.from.address })

const howItSends = ({ auth }: AuthHook) => (auth.kind === 'login' ? ('smtp' as const) : ('http' as const))

/** The system of a path. */
function requireSystem(name: string): AuthHook | Result<never> {
  const known = systems.map((system) => system.name).join(', ')
  return findSystem(name) ?? fail('not_found', `Postern takes no auth hooks of "${name}": the systems are ${known}.`)
}

export const listAuthHooks = operation({
  method: 'GET',
  path: '/v1/apps/{app}/auth-hooks',
  role: 'reader',
  summary: 'Lists the auth servers that can post to an app, with their secrets that work and their instructions.',
  answer: closed({
    listens: Type.Boolean({ description: 'Whether this process listens for auth servers that post.' }),
    takesMail: Type.Boolean({ description: 'Whether it listens for those that send over SMTP.' }),
    items: Type.Array(
      closed({
        system: systemName(),
        title: Type.String(),
        sends: Type.Enum(['http', 'smtp']),
        url: Type.String({ description: 'Where the auth server posts, or the SMTP server that it sends to.' }),
        secrets: Type.Array(KeyResource),
        steps: Type.Array(StepResource),
      }),
    ),
  }),
  async run({ authHooksListener, authHooksUrl, store, submissionUrl, takesSubmissions }, _input, app) {
    const keys = (await store.listKeys(app.id)).filter((key) => !hasEnded(key, store.now()))
    const items = systems.map((system) => {
      const url = authHookUrl({ authHooksUrl, submissionUrl }, system, app)
      return {
        ...{ system: system.name, title: system.title, url, sends: howItSends(system) },
        secrets: keys.filter(({ hook }) => hook === system.name).map(presentKey),
        steps: [...system.setUp({ ...placeOf(app), url, secret: null })],
      }
    })
    return done({ listens: authHooksListener !== null, takesMail: takesSubmissions, items })
  },
})

export const connectAuthHook = operation({
  method: 'POST',
  path: '/v1/apps/{app}/auth-hooks/{system}',
  role: 'operator',
  summary:
    'Makes a secret by which an auth server posts to the app, or takes one that the server made. The one before ends after `graceSeconds`.',
  body: closed({
    secret: Type.Optional(
      Type.String({ maxLength: 500, description: 'Where the auth server makes its secrets itself.' }),
    ),
    graceSeconds: graceField(30),
  }),
  answer: closed({
    key: KeyResource,
    url: Type.String(),
    secret: Type.String({ description: 'Only this answer contains it.' }),
    oldExpiresAt: orNull(Type.String({ format: 'date-time' })),
    steps: Type.Array(StepResource),
  }),
  outlives: always,
  creates: true,
  errors: ['not_found', 'too_many_keys', 'name_taken', 'app_changing'],
  async run({ access, authHooksUrl, sealAuthHookSecret, store, submissionUrl }, { body, params }, app) {
    const system = requireSystem(params.system)
    if ('ok' in system) return system
    const key = newAuthHookSecret()
    const hash = hashDeliveryKey(key)
    const signing = chooseSecret(system, body.secret)
    if (!signing.ok) return invalid(signing.issues)
    const sealed = signing.value === null ? {} : { sealed: sealAuthHookSecret(hash, signing.value) }
    const newest = (await store.listKeys(app.id)).findLast(
      (known) => known.hook === system.name && !hasEnded(known, store.now()),
    )
    const oldExpiresAt = store.now() + (body.graceSeconds ?? daySeconds) * 1000
    const made =
      newest === undefined
        ? await store.createKey(
            {
              ...{ app: app.id, hash, name: nameKey(system), expiresAt: null, hook: system.name },
              ...sealed,
            },
            access.actor,
          )
        : await store.replaceKey(newest.id, { hash, expiresAt: null, oldExpiresAt, ...sealed }, access.actor)
    if (made === null) return appNotFound(params.app)
    if (made === 'too_many') return tooManyKeys()
    if (made === 'name_taken') return keyNameTaken(nameKey(system))
    if (made === 'ended') return fail('app_changing', `The secrets of ${system.title} were just changed: try again.`)
    const secret = signing.value ?? key
    const url = authHookUrl({ authHooksUrl, submissionUrl }, system, app)
    const ending = newest === undefined ? null : await store.findKey(newest.id)
    return done(
      {
        ...{ key: presentKey(made), url, secret },
        oldExpiresAt: ending?.expiresAt == null ? null : iso(ending.expiresAt),
        steps: [...system.setUp({ ...placeOf(app), url, secret })],
      },
      { created: true },
    )
  },
})

/** Names of keys are for people; no other key of the app has it. */
const nameKey = ({ title }: AuthHook): string => `hook of ${title}`

/** The secret that a system signs with; null for one that sends its key. */
function chooseSecret({ auth, title }: AuthHook, given: string | undefined): Parsed<string | null> {
  const refuse = (code: string, message: string) => refused({ field: 'secret', code, message })
  if (auth.kind !== 'signed')
    return given === undefined
      ? parsed(null)
      : refuse('not_taken', `${title} sends the secret that Postern makes: give none.`)
  const secret = given ?? auth.makeSecret?.() ?? null
  if (secret === null) return refuse('required', `${title} makes its secret itself: give it here.`)
  const fault = auth.checkSecret(secret)
  return fault === null ? parsed(secret) : refuse('malformed_secret', fault)
}

const CheckedMessage = closed({
  message: orNull(Type.String({ description: "The system's own name for it; null if the payload names none." })),
  result: Type.Enum(['sent', 'not_sent', 'refused'], { description: '`not_sent`: a notice.' }),
  type: orNull(Type.Enum([...emailTypes])),
  purpose: orNull(Type.Enum([...purposes])),
  hosted: Type.Boolean({ description: 'Whether its link is a hosted link.' }),
  code: Type.Boolean({ description: 'Whether the email shows a code.' }),
  expiresAt: orNull(Type.String({ format: 'date-time' })),
  refusal: orNull(closed({ code: Type.String(), message: Type.String() })),
  issues: Type.Array(closed({ field: Type.String(), code: Type.String(), message: Type.String() })),
})

export const checkAuthHook = operation({
  method: 'POST',
  path: '/v1/apps/{app}/auth-hooks/{system}/check',
  role: 'reader',
  summary:
    'Says what would happen to the messages of an auth server: to a payload, or else to a sample of each kind, whose hosts count as allowed. Sends, counts and stores nothing, and repeats no address, link or code.',
  body: closed({
    payload: Type.Optional(
      Type.Unknown({
        description: 'A body as the system posts it; for a system that sends over SMTP, the message as text.',
      }),
    ),
  }),
  audited: false,
  answer: closed({ items: Type.Array(CheckedMessage) }),
  errors: ['not_found'],
  async run({ links, store }, { body: { payload }, params }, app) {
    const system = requireSystem(params.system)
    if ('ok' in system) return system
    const context = { policy: appPolicy(app), links, nowMs: store.now(), traceparent: null }
    if (payload !== undefined)
      return done({ items: check(system, await readPayload(system, app.slug, payload), context) })
    const withSamples = { ...context, policy: allowSamples(app) }
    return done({
      items: (system.samples ?? Object.keys(system.kinds)).flatMap((kind) =>
        check(system, parsed(system.sample(kind)), withSamples),
      ),
    })
  },
})

/** The hosts of samples are none that an app would allow. */
const sampleHosts = [...['app', 'auth', 'blog', 'cloud', 'cms', 'forum', 'git', 'grafana', 'id', 'vault', 'www']].map(
  (name) => `https://${name}.example.com`,
)

function allowSamples(app: App): JudgeContext['policy'] {
  const policy = appPolicy(app)
  const samples = sampleHosts.map(parseAllowedUrl).flatMap((entry) => (entry.ok ? [entry.value] : []))
  return { ...policy, allowedUrls: [...policy.allowedUrls, ...samples] }
}

/** The body that a system reads; of a message over SMTP, all that counts. */
async function readPayload({ auth }: AuthHook, slug: string, payload: unknown): Promise<Parsed<unknown>> {
  if (auth.kind !== 'login') return parsed(payload)
  return typeof payload === 'string'
    ? mailReader.read(slug, Buffer.from(payload), null)
    : refused({ field: 'payload', code: 'not_a_string', message: 'Give the message as text.' })
}

function check(system: AuthHook, payload: Parsed<unknown>, context: JudgeContext) {
  const messages = payload.ok ? readMessages(system, payload.value, context.policy) : payload
  return judgeMessages(system, messages, context).map((judgement, n) =>
    present(messages.ok ? (messages.value[n]?.kind ?? null) : null, judgement),
  )
}

function present(message: string | null, { judged: { verdict }, rejection }: Judgement) {
  const none = { type: null, purpose: null, hosted: false, code: false, expiresAt: null, issues: [] }
  if (rejection?.code === 'notice_not_sent') return { ...none, message, result: 'not_sent' as const, refusal: null }
  if (rejection !== null || !('admit' in verdict)) {
    const { code, issues = [], message: text } = rejection ?? { code: 'unsupported_email' as const }
    const refusal = { code, message: text ?? refusals[code].message }
    return { ...none, message, result: 'refused' as const, refusal, issues: [...issues] }
  }
  const { content, expiresAt, type } = verdict.admit
  return {
    ...{ message, result: 'sent' as const, type, refusal: null, issues: [] },
    purpose: content.purpose ?? null,
    hosted: content.hosted === true,
    code: content.code !== undefined,
    expiresAt: iso(expiresAt),
  }
}
