/** Adds a sender domain to an app whose operator has published the proof in DNS. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import {
  hasDomain,
  parseSenderDomain,
  proofRecord,
  senderDomainsMax,
} from '../../domain/app/sender-domains.ts'
import { appChangeTriesMax } from '../../domain/bounds.ts'
import { always, operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { AppResource, presentApp } from '../resources.ts'

export const proveDomain = operation({
  method: 'POST',
  path: '/v1/apps/{app}/domain/prove',
  role: 'operator',
  target: 'app',
  outlives: always,
  summary:
    'Looks for the TXT record `_postern.DOMAIN` with the value `postern-app=ID`, which only the owner of the domain can publish, and adds the domain to `senderDomains`. Takes up to 15 s.',
  body: closed({ domain: Type.String({ maxLength: 253, examples: ['acme.example'] }) }),
  costly: true,
  answer: AppResource,
  errors: ['record_missing', 'app_changing'],
  async run({ access, newLookup, store }, { body }, found) {
    const parsed = parseSenderDomain(body.domain)
    if (!parsed.ok) return invalid(parsed.issues.map((issue) => ({ ...issue, field: 'domain' })))
    const domain = parsed.value
    if (hasDomain(found.settings, domain)) return done(presentApp(found))
    const { name, value } = proofRecord(found.id, domain)
    const lookup = newLookup()
    const [answer, alias] = await Promise.all([lookup(name, 'TXT'), lookup(name, 'CNAME')])
    // A wildcard alias would let the owner of its target publish the record.
    if (alias.kind === 'found')
      return fail('record_missing', `${name} is an alias. Publish the TXT record at this name itself.`)
    if (alias.kind === 'unknown')
      return fail(
        'record_missing',
        `DNS did not answer for ${name} (${alias.reason}), so ${domain} was not added. Try again.`,
      )
    if (answer.kind === 'unknown')
      return fail(
        'record_missing',
        `DNS did not answer for ${name} (${answer.reason}), so ${domain} was not added. Try again.`,
      )
    if (answer.kind === 'absent' || !answer.records.includes(value))
      return fail(
        'record_missing',
        `${domain} was not added. Publish this TXT record, and try again: ${name} "${value}"`,
      )
    // When another change comes between reading and writing, the domain is added to the new settings.
    let app: App | null = found
    for (let tries = 0; tries < appChangeTriesMax && app !== null; tries++) {
      const senderDomains = [...new Set([...app.settings.senderDomains, domain])].toSorted()
      if (senderDomains.length > senderDomainsMax)
        return invalid([
          {
            field: 'domain',
            code: 'too_many',
            message: `An app has at most ${senderDomainsMax} sender domains.`,
          },
        ])
      const change = { settings: { ...app.settings, senderDomains }, ifVersion: app.version }
      const changed = await store.updateApp(app.id, change, access.actor)
      if (changed !== null && changed !== 'stale') return done(presentApp(changed))
      app = await store.findApp(found.id)
    }
    return fail('app_changing', 'Others are changing or deleting the app; check it and try again.')
  },
})
