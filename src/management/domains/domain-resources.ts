/** Records of DNS and the findings about them, as operations answer with them. */
import { type Static, Type } from 'typebox'
import { type DomainLine, domainChecks } from '../../dns/check-domain.ts'
import { quoteRecord } from '../../domain/dns/dkim-record.ts'
import { results } from '../../domain/dns/lookup.ts'
import { closed, orNull } from '../operation/schema.ts'

export const RecordResource = closed({
  name: Type.String({ examples: ['p202701311405r._domainkey.acme.example'] }),
  type: Type.Literal('TXT'),
  value: Type.String(),
  quoted: Type.String({
    description: 'The value as a zone file has it, in strings of at most 255 characters.',
  }),
})

type DnsRecord = Pick<Static<typeof RecordResource>, 'name' | 'value'>

export const presentRecord = (record: DnsRecord): Static<typeof RecordResource> => ({
  ...record,
  type: 'TXT',
  quoted: quoteRecord(record.value),
})

export const LineResource = closed({
  check: Type.Enum([...domainChecks]),
  name: Type.String({ description: 'The name that DNS was asked for, or the link domain that was opened.' }),
  result: Type.Enum([...results], {
    description: 'unknown: DNS did not answer. warn: mail arrives, but less surely.',
  }),
  message: Type.String(),
  found: orNull(Type.String({ description: 'The text that is in DNS, at most 500 characters of it.' })),
  publish: orNull(RecordResource),
})

export type Line = Static<typeof LineResource>

export const presentLine = ({ publish, ...line }: DomainLine): Line => ({
  ...line,
  publish: publish === null ? null : presentRecord(publish),
})
