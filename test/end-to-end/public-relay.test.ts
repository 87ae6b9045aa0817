/** A relay of a transport is reached at public addresses alone, and its certificate is that of its name. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { lacking, toolPath } from '../support/installed.ts'

const child = fileURLToPath(new URL('../support/public-relay-child.ts', import.meta.url))
const skip = lacking('ip', 'unshare')
/** The name in the certificate. */
const name = 'sns.eu-west-1.amazonaws.com'

function connectTo(address: string, host: string): string {
  const setUp = `${toolPath('ip')} link set lo up && ${toolPath('ip')} addr add 9.9.9.9/32 dev lo && exec "$@"`
  const args = ['-n', 'sh', '-c', setUp, 'sh', process.execPath, child, address, host]
  return execFileSync(toolPath('unshare'), args, { encoding: 'utf8' }).trim()
}

test('it is connected to at the address that was looked up, and its certificate is verified for its name', {
  skip,
}, () => {
  assert.equal(connectTo('9.9.9.9', name), 'connected')
  assert.match(connectTo('9.9.9.9', 'smtp.acme.example'), /certificate|altnames/)
})

test('a name that has private addresses alone is refused, and one that nobody answers for ends in time', {
  skip,
}, () => {
  for (const address of ['127.0.0.1', '169.254.169.254', '10.0.0.1'])
    assert.match(connectTo(address, name), /the addresses of \S+ are not on the public Internet/)
  assert.match(connectTo('127.0.0.1', '10.0.0.1'), /^10\.0\.0\.1 is not on the public Internet/)
  assert.match(connectTo('', name), /no session in time/)
})
