import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AwsV4Signer } from 'aws4fetch'
import fc from 'fast-check'
import { signRequest } from './sigv4.ts'

const word = fc.stringMatching(/^[A-Za-z0-9+/=]{1,60}$/)

test('1,000 random requests are signed as another signer signs them', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        keyId: word,
        secret: word,
        region: fc.constantFrom('eu-west-1', 'us-gov-east-1', 'ap-southeast-3'),
        host: fc.domain(),
        path: fc
          .array(fc.stringMatching(/^[\w~!'()*@ .-]{1,12}$/), { maxLength: 4 })
          .map((parts) => `/${parts.map(encodeURIComponent).join('/')}`),
        body: fc.uint8Array({ maxLength: 200 }),
        nowMs: fc
          .date({ min: new Date('2020-01-01'), max: new Date('2099-01-01'), noInvalidDate: true })
          .map((date) => date.getTime()),
      }),
      async ({ keyId, secret, region, host, path, body, nowMs }) => {
        const url = new URL(`https://${host}${path}`)
        const own = signRequest(
          { keyId, secret, region, service: 'ses' },
          { host: url.host, path: url.pathname, body: Buffer.from(body), nowMs },
          { 'content-type': 'application/json' },
        )
        const datetime = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
        const signer = new AwsV4Signer({
          ...{ method: 'POST', url: url.href, body: Buffer.from(body), datetime, region, service: 'ses' },
          ...{ accessKeyId: keyId, secretAccessKey: secret, allHeaders: true },
          headers: { 'content-type': 'application/json' },
        })
        const { headers } = await signer.sign()
        assert.equal(own.authorization, headers.get('authorization'))
        assert.equal(own['x-amz-date'], headers.get('x-amz-date'))
      },
    ),
    { numRuns: 1000 },
  )
})
