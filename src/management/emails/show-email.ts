/** Shows the record of one email, and what became of it. */
import { explainEmail } from '../explain-email.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { EmailDetail, presentEmail, presentTrail } from '../resources.ts'

export const showEmail = operation({
  method: 'GET',
  path: '/v1/emails/{email}',
  role: 'reader',
  target: 'email',
  summary: 'Shows what happened to one email, with each attempt. Its content is never shown.',
  answer: EmailDetail,
  async run({ store }, _input, email) {
    const app = await store.findApp(email.app)
    const explanation = explainEmail(email, app?.status === 'disabled' ? app.slug : null)
    return done({ ...presentEmail(email), explanation, trail: presentTrail(email) })
  },
})
