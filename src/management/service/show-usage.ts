/** Counts emails and refusals: those of an app by day, and those of each app today. */

import { Type } from 'typebox'
import { keepDays } from '../../domain/bounds.ts'
import { dayMs } from '../../domain/duration.ts'
import { isInScope } from '../operation/access.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { appStatus, closed } from '../operation/schema.ts'
import { iso, newPageSchema, presentUsage, UsageResource } from '../resources.ts'

export const showUsage = operation({
  method: 'GET',
  path: '/v1/apps/{app}/usage',
  role: 'reader',
  summary: `Counts the emails and refusals of an app by day (UTC) for the last ${keepDays} days, newest first.`,
  answer: newPageSchema(UsageResource),
  run: async ({ store }, _input, { id }) => done({ items: (await store.readUsage(id)).map(presentUsage), next: null }),
})

const { day: _, ...counts } = UsageResource.properties

export const listUsage = operation({
  method: 'GET',
  path: '/v1/usage',
  role: 'reader',
  summary: 'Counts the emails and refusals of each app today (UTC), with its daily limit.',
  answer: closed({
    day: Type.String({ format: 'date' }),
    endsAt: Type.String({ format: 'date-time' }),
    items: Type.Array(
      closed({
        app: Type.String(),
        slug: Type.String(),
        name: Type.String(),
        status: appStatus(),
        dailyLimit: Type.Integer(),
        ...counts,
      }),
    ),
  }),
  async run({ store, access }) {
    const today = Math.floor(store.now() / dayMs)
    const usage = await store.readUsageToday(access.apps && [...access.apps])
    const apps = (await store.listApps()).filter(({ id }) => isInScope(access, id))
    const items = apps.map(({ id, slug, status, settings }) => {
      const { day: _day, ...counted } = presentUsage({ day: '', counts: usage.get(id) ?? {} })
      return { app: id, slug, name: settings.name, status, dailyLimit: settings.limits.daily, ...counted }
    })
    return done({ day: iso(today * dayMs).slice(0, 10), endsAt: iso((today + 1) * dayMs), items })
  },
})
