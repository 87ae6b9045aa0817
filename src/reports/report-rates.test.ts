import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReportRates } from './report-rates.ts'

const mebibyte = 1024 * 1024

function newRates() {
  const clock = { ms: 1000 }
  const rates = new ReportRates(
    (address) => address.startsWith('10.'),
    () => clock.ms,
  )
  /** Bytes that a client sends in pieces of 16 KiB, until it has to wait. */
  const sendAll = (toAddress: (n: number) => string) => {
    let bytes = 0
    for (let n = 0; rates.mayBegin(toAddress(n)); n++) {
      if (!rates.charge(toAddress(n), 16 * 1024)) break
      bytes += 16 * 1024
    }
    return bytes / mebibyte
  }
  return { clock, rates, sendAll }
}

for (const [name, toAddress, most] of [
  ['one client', () => '192.0.2.1', 2],
  ['a /24', (n: number) => `192.0.2.${n % 250}`, 16 / 6],
  ['a /16', (n: number) => `192.0.${n % 250}.1`, 4],
  ['an IPv6 /32', (n: number) => `2600:1:${n % 9999}::1`, 4],
  ['many networks', (n: number) => `${1 + (n % 200)}.${n % 250}.1.1`, 16],
  ['a proxy', () => '10.0.0.1', 16],
] as const)
  test(`${name} may send ${most.toFixed(1)} MiB at once`, () => {
    const { rates, sendAll } = newRates()
    const sent = sendAll(toAddress)
    assert.ok(sent > most * 0.9 && sent < most * 1.1, String(sent))
    assert.equal(rates.mayBegin('198.51.100.1'), most < 16)
  })

test('what was sent is paid in time', () => {
  const { clock, rates, sendAll } = newRates()
  sendAll(() => '192.0.2.1')
  assert.equal(rates.mayBegin('192.0.2.1'), false)
  clock.ms += 100
  assert.equal(rates.mayBegin('192.0.2.1'), true)
})

test('messages that began together are cut off before they use up the rate of all', () => {
  const { rates } = newRates()
  let bytes = 0
  while (rates.charge(`192.0.${(bytes / 1024) % 250}.1`, 1024)) bytes += 1024
  assert.ok(bytes < 9 * mebibyte, String(bytes))
  assert.equal(rates.mayBegin('198.51.100.1'), true)
})

test('small pieces cost more', () => {
  const { rates } = newRates()
  let bytes = 0
  while (rates.charge('192.0.2.1', 3)) bytes += 3
  assert.ok(bytes < 32 * 1024, String(bytes))
})
