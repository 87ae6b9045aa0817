/** Shows the domain of an app's From address, with the keys that sign its mail. */
import { Type } from 'typebox'
import { isInScope } from '../operation/access.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { fromDomain } from './domain-subject.ts'
import { presentSigningKey, SigningKeyResource } from './signing-key-resource.ts'

export const showDomain = operation({
  method: 'GET',
  path: '/v1/apps/{app}/domain',
  role: 'reader',
  summary: 'Shows the domain of the app’s From address, and the keys that sign its mail with the records to publish.',
  answer: closed({
    domain: Type.String(),
    apps: Type.Array(Type.String(), {
      description: 'The slugs of the apps that send from this domain, of those that you see: they share its keys.',
    }),
    keys: Type.Array(SigningKeyResource),
  }),
  async run({ access, store }, _input, app) {
    const domain = fromDomain(app)
    const [keys, apps] = await Promise.all([store.listSigningKeys(domain), store.listApps()])
    const sharing = apps.filter((other) => isInScope(access, other.id) && fromDomain(other) === domain)
    return done({ domain, apps: sharing.map(({ slug }) => slug), keys: keys.map(presentSigningKey) })
  },
})
