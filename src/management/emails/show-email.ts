/** Shows the record of one email, and what became of it. */
import { explainEmail } from '../explain-email.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { presentEmail } from '../resources.ts'
import { presentSuppression } from '../suppressions/suppression-resource.ts'
import { EmailDetail, presentTrail } from './email-detail.ts'

export const showEmail = operation({
  method: 'GET',
  path: '/v1/emails/{email}',
  role: 'reader',
  summary: 'Shows what happened to one email, with each attempt. Its content is never shown.',
  answer: EmailDetail,
  async run({ access, store }, _input, email) {
    const [app, suppressions] = await Promise.all([
      store.findApp(email.app),
      store.findSuppressions(email.recipient, [email.app, null]),
    ])
    const disabledApp = app === null || app.status === 'active' ? null : app.slug
    // Others than the whole service see that a suppression for all apps is there, and not which.
    const seen = suppressions.filter((suppression) => access.apps === null || suppression.app !== null)
    return done({
      ...presentEmail(email),
      explanation: explainEmail(email, { disabledApp, suppressions, nowMs: store.now() }),
      trail: presentTrail(email),
      suppressions: seen.map(presentSuppression),
    })
  },
})
