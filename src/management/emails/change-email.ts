/** An operator's changes of emails: retry one or all deferred ones now, or cancel one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Type } from 'typebox'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { EmailChange, RetryStep } from '../../store/operator-store.ts'
import { findTarget } from '../operation/find-target.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done, type ErrorCode, fail, type Result } from '../operation/result.ts'
import { appName, closed } from '../operation/schema.ts'
import { EmailResource, presentEmail } from '../resources.ts'

export const retryEmail = operation({
  method: 'POST',
  path: '/v1/emails/{email}/retry',
  role: 'operator',
  summary: 'Makes a deferred email due now.',
  answer: EmailResource,
  errors: ['email_finished', 'email_sending', 'email_not_deferred'],
  async run(context, { params }, { id }) {
    const change = await context.store.retryEmail(id, context.access.actor)
    if (change === 'done') context.onQueued()
    return answer(context, params.email, change)
  },
})

export const cancelEmail = operation({
  method: 'POST',
  path: '/v1/emails/{email}/cancel',
  role: 'operator',
  summary: 'Cancels a queued email and deletes its content.',
  answer: EmailResource,
  errors: ['email_finished', 'email_sending'],
  async run(context, { params }, { id, app }) {
    const change = await context.store.cancelEmail(id, context.access.actor)
    const end = { emailId: id, appId: app, state: 'cancelled', reason: 'by_operator' } as const
    if (change === 'done') context.emit({ kind: 'emails_ended', ended: [end] })
    return answer(context, params.email, change)
  },
})

type Refused = Exclude<EmailChange, 'done' | 'not_found'>

const reasons: Record<Refused, [ErrorCode, string]> = {
  finished: ['email_finished', 'it is finished, and its content is deleted; ask the app to send a new email'],
  sending: [
    'email_sending',
    'a worker is sending it. Try again in a minute; if no process is sending, start one: it takes the email back',
  ],
  not_deferred: ['email_not_deferred', 'it is not deferred; it is already waiting for a worker'],
}

async function answer(context: Context, id: string, change: EmailChange): Promise<Result<EmailResource>> {
  const email = await findTarget('email', context, { email: id })
  if (!email.ok) return email
  if (change === 'done' || change === 'not_found') return done(presentEmail(email.value))
  const [code, reason] = reasons[change]
  return fail(code, `${id} was not changed: ${reason}.`)
}

/** How long one request goes through the queue. Repeated, it begins anew, and finds what it left. */
const retryAllMs = 5000

export const retryAll = operation({
  method: 'POST',
  path: '/v1/emails/retry',
  role: 'operator',
  costly: true,
  summary: 'Makes every deferred email of one app or of all apps due now, except those that may have killed workers.',
  body: closed({ app: Type.Optional(appName()) }),
  answer: closed({
    retried: Type.Integer(),
    complete: Type.Boolean({ description: 'False if the queue was too long for one request: repeat it.' }),
  }),
  errors: ['not_found'],
  async run(context, { body: { app } }) {
    const found = app === undefined ? null : await findTarget('app', context, { app })
    if (found?.ok === false) return found
    const { apps } = context.access
    return done(await walk(context, found !== null ? [found.value.id] : apps && [...apps]))
  },
})

async function walk({ store, access, onQueued }: Context, apps: readonly AppId[] | null) {
  const endMs = performance.now() + retryAllMs
  let [retried, after]: [number, EmailId | null] = [0, null]
  do {
    const beganMs = performance.now()
    const step: RetryStep = await store.retryDeferred(apps, after, retried === 0 ? access.actor : null)
    retried += step.retried
    after = step.next
    if (step.retried === 0) continue
    onQueued()
    await sleep(performance.now() - beganMs) // others write for as long
  } while (after !== null && performance.now() < endMs)
  return { retried, complete: after === null }
}
