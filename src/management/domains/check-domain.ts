/** Asks DNS about the domains of an app: whether its mail arrives, and whether its operator owns one. */
import { Type } from 'typebox'
import { hasDomain, parseSenderDomain, proofRecord, senderDomainsMax } from '../../domain/app/sender-domains.ts'
import { changeLatest } from '../apps/change-app.ts'
import { always, operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppResource, presentApp } from '../resources.ts'
import { checkLinkDomain } from './check-link-domain.ts'
import { LineResource, presentLine } from './domain-resources.ts'
import { checkAppDomain, fromDomain } from './domain-subject.ts'

export const checkDomainOfApp = operation({
  method: 'POST',
  path: '/v1/apps/{app}/domain/check',
  role: 'operator',
  summary:
    'Asks DNS for everything that decides whether mail from the app’s domain arrives: keys, SPF, DMARC, MX; and opens its link domain. Takes up to 15 s.',
  costly: true,
  answer: closed({
    domain: Type.String(),
    ok: Type.Boolean({ description: 'True if nothing fails.' }),
    lines: Type.Array(LineResource),
  }),
  async run(context, _input, app) {
    const { access, store } = context
    const domain = fromDomain(app)
    const checks = [checkAppDomain(app, context), checkLinkDomain(app, context)]
    const lines = (await Promise.all(checks)).flat().map(presentLine)
    await store.keepCheck(app.id, lines)
    await store.recordAction(
      { action: 'domain.check', app: app.id, target: domain, before: null, after: null },
      access.actor,
    )
    return done({ domain, ok: lines.every(({ result }) => result !== 'fail'), lines })
  },
})

export const proveDomain = operation({
  method: 'POST',
  path: '/v1/apps/{app}/domain/prove',
  role: 'operator',
  outlives: always,
  summary:
    'Looks for the TXT record `_postern.DOMAIN` with the value `postern-app=ID`, which only the owner of the domain can publish, and adds the domain to `senderDomains`. Takes up to 15 s.',
  body: closed({ domain: Type.String({ maxLength: 253, examples: ['acme.example'] }) }),
  costly: true,
  answer: AppResource,
  errors: ['record_missing', 'app_changing'],
  async run(context, { body }, found) {
    const parsed = parseSenderDomain(body.domain, 'domain')
    if (!parsed.ok) return invalid(parsed.issues)
    const domain = parsed.value
    if (hasDomain(found.settings, domain)) return done(presentApp(found))
    const { name, value } = proofRecord(found.id, domain)
    const lookup = context.newLookup()
    const [answer, alias] = await Promise.all([lookup(name, 'TXT'), lookup(name, 'CNAME')])
    const refuse = (message: string) => fail('record_missing', message)
    // A wildcard alias would let the owner of its target publish the record.
    if (alias.kind === 'found') return refuse(`${name} is an alias. Publish the TXT record at this name itself.`)
    for (const each of [alias, answer])
      if (each.kind === 'unknown')
        return refuse(`DNS did not answer for ${name} (${each.reason}), so ${domain} was not added. Try again.`)
    if (answer.kind !== 'found' || !answer.records.includes(value))
      return refuse(`${domain} was not added. Publish this TXT record, and try again: ${name} "${value}"`)
    return changeLatest(context, found, ({ settings }) => {
      const senderDomains = [...new Set([...settings.senderDomains, domain])].toSorted()
      const message = `An app has at most ${senderDomainsMax} sender domains.`
      return senderDomains.length > senderDomainsMax
        ? invalid([{ field: 'domain', code: 'too_many', message }])
        : done({ settings: { ...settings, senderDomains } })
    })
  },
})
