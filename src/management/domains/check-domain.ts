/** Checks in DNS that the mail of an app's domain arrives. */
import { type Static, Type } from 'typebox'
import { type DomainLine, domainChecks } from '../../dns/check-domain.ts'
import { results } from '../../domain/dns/lookup.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { checkAppDomain, fromDomain } from './domain-subject.ts'
import { presentRecord, RecordResource } from './signing-keys.ts'

const LineResource = closed({
  check: Type.Enum([...domainChecks]),
  name: Type.String({ description: 'The name that DNS was asked for.' }),
  result: Type.Enum([...results], {
    description: 'unknown: DNS did not answer. warn: mail arrives, but less surely.',
  }),
  message: Type.String(),
  found: orNull(Type.String({ description: 'The text that is in DNS, at most 500 characters of it.' })),
  publish: orNull(RecordResource),
})

export const checkDomainOfApp = operation({
  method: 'POST',
  path: '/v1/apps/{app}/domain/check',
  role: 'operator',
  summary:
    'Asks DNS for everything that decides whether mail from the app’s domain arrives: keys, SPF, DMARC, MX. Takes up to 15 s.',
  costly: true,
  answer: closed({
    domain: Type.String(),
    ok: Type.Boolean({ description: 'True if nothing fails.' }),
    lines: Type.Array(LineResource),
  }),
  async run(context, _input, app) {
    const { access, store } = context
    const domain = fromDomain(app)
    const lines = await checkAppDomain(app, context)
    await store.recordAction(
      { action: 'domain.check', app: app.id, target: domain, before: null, after: null },
      access.actor,
    )
    return done({ domain, ok: lines.every(({ result }) => result !== 'fail'), lines: lines.map(presentLine) })
  },
})

const presentLine = ({ publish, ...line }: DomainLine): Static<typeof LineResource> => ({
  ...line,
  publish: publish === null ? null : presentRecord(publish),
})
