/** Lists the auth servers that can post to an app: their address, their secrets, and what to do there. */
import { Type } from 'typebox'
import { systems } from '../../domain/auth-hooks/auth-hooks.ts'
import { hasEnded } from '../../domain/bearer.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { KeyResource, presentKey } from '../resources.ts'
import { authHookUrl, StepResource, systemName } from './auth-hook-parts.ts'

export const listAuthHooks = operation({
  method: 'GET',
  path: '/v1/apps/{app}/auth-hooks',
  role: 'reader',
  summary: 'Lists the auth servers that can post to an app, with their secrets that work and their instructions.',
  answer: closed({
    listens: Type.Boolean({ description: 'Whether this process listens for auth servers.' }),
    items: Type.Array(
      closed({
        system: systemName(),
        title: Type.String(),
        url: Type.String({ description: 'Where the auth server posts.' }),
        secrets: Type.Array(KeyResource),
        steps: Type.Array(StepResource),
      }),
    ),
  }),
  async run({ authHooksListener, authHooksUrl, store }, _input, app) {
    const keys = (await store.listKeys(app.id)).filter((key) => !hasEnded(key, store.now()))
    const items = systems.map((system) => {
      const url = authHookUrl(authHooksUrl, system, app)
      return {
        ...{ system: system.name, title: system.title, url },
        secrets: keys.filter(({ hook }) => hook === system.name).map(presentKey),
        steps: [...system.setUp({ url, secret: null })],
      }
    })
    return done({ listens: authHooksListener !== null, items })
  },
})
