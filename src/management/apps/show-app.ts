/** Shows one app and its settings. */
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { AppResource, presentApp } from '../resources.ts'

export const showApp = operation({
  method: 'GET',
  path: '/v1/apps/{app}',
  role: 'reader',
  summary: 'Shows an app by its slug or id.',
  answer: AppResource,
  versioned: true,
  run: (_context, _input, app) => done(presentApp(app)),
})
