/** Fingerprints of what pages show: a page fetches itself when one differs from the last. */
import { webhooksListed } from '../domain/bounds.ts'
import { minuteMs } from '../domain/duration.ts'
import type { AppId, EmailId } from '../domain/id.ts'
import type { Management } from './context.ts'

export type Fingerprints = {
  /** Everything that the overview shows. It also changes each minute, for charts and ages. */
  readonly describeService: () => Promise<string>
  /** By the kind of a topic such as `email:em_…`: what the pages of one thing show. */
  readonly describe: Readonly<Record<'email' | 'webhooks', (id: string) => Promise<string>>>
}

export const newFingerprints = ({ queue, store }: Pick<Management, 'queue' | 'store'>): Fingerprints => ({
  async describeService() {
    const to = Math.floor(store.now() / minuteMs) + 1
    const range = { apps: null, from: to - 60, to, step: 60 } as const
    const { countedAt: _, ...counts } = await queue.get() // what the pages show, and mostly the same count
    const nodes = (await store.listNodes()).map(({ id, relays }) => ({ id, relays }))
    return JSON.stringify([to, counts, nodes, await store.readActivity(range)])
  },
  describe: {
    async email(id) {
      const email = await store.findEmail(id as EmailId)
      return email === null ? '' : `${email.state} ${email.trail.length} ${email.nextAttemptAt}`
    },
    async webhooks(app) {
      const messages = await store.listWebhookMessages(app as AppId, webhooksListed)
      return messages.map(({ id, result, tries }) => `${id} ${tries} ${result}`).join()
    },
  },
})
