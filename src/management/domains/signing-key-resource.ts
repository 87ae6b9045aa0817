/** Signing keys as operators see them, with the record that each needs in DNS. */
import { type Static, Type } from 'typebox'
import { type SigningKey, signingAlgorithms, signingKeyStates } from '../../domain/delivery/signing-key.ts'
import { dkimName, formatDkimRecord, quoteRecord } from '../../domain/dns/dkim-record.ts'
import { fail } from '../operation/result.ts'
import { closed, time } from '../operation/schema.ts'
import { present } from '../resources.ts'

export const RecordResource = closed({
  name: Type.String({ examples: ['p202701311405r._domainkey.acme.example'] }),
  type: Type.Literal('TXT'),
  value: Type.String(),
  quoted: Type.String({
    description: 'The value as a zone file has it, in strings of at most 255 characters.',
  }),
})

export const SigningKeyResource = closed({
  selector: Type.String(),
  algorithm: Type.Enum([...signingAlgorithms]),
  state: Type.Enum([...signingKeyStates], {
    description:
      'pending: its record is to be published. active: it signs. retired: another key signs; leave its record for 7 days.',
  }),
  record: RecordResource,
  createdAt: time(),
  changedAt: time(),
})
export type SigningKeyResource = Static<typeof SigningKeyResource>

export const presentSigningKey = (key: SigningKey): SigningKeyResource => {
  const record = { name: dkimName(key.selector, key.domain), value: formatDkimRecord(key.algorithm, key.publicKey) }
  return present(SigningKeyResource, { ...key, record: presentRecord(record) })
}

type DnsRecord = Pick<Static<typeof RecordResource>, 'name' | 'value'>

export const presentRecord = (record: DnsRecord): Static<typeof RecordResource> => ({
  ...record,
  type: 'TXT',
  quoted: quoteRecord(record.value),
})

export const signingKeyNotFound = (selector: string, domain: string) =>
  fail('not_found', `There is no signing key "${selector}" of ${domain}.`)
