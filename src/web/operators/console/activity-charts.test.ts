import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer } from '../../../management/operations.ts'
import type { NodeResource } from '../../../management/resources.ts'
import type { Html } from '../../../templates/html.ts'
import { activityCharts, chooseRange, emailsChart, keyCharts, relayCharts } from './activity-charts.ts'

type Activity = Answer<'activity.show'>
type RelayResource = NodeResource['relays'][number]

const now = Date.parse('2026-11-22T12:59:30Z')
const at = (time: string) => `2026-11-22T${time}.000Z`
const counts: Omit<Activity['items'][number], 'at'> = {
  ...{
    accepted: 0,
    replayed: 0,
    delivered: 0,
    deferred: 0,
    expired: 0,
    cancelled: 0,
    complained: 0,
    suppressed: 0,
    gone: 0,
    lostLeases: 0,
  },
  ...{ refused: {}, failed: {}, bounced: {}, replies: {}, keys: {}, relays: {}, p50Ms: null, p95Ms: null },
}
const activity = (items: Activity['items'], total: Activity['total'] = counts): Activity => ({
  ...{ step: 'minute', from: at('12:00:00'), to: at('13:00:00') },
  ...{ total, items },
})
const node = (relay: Partial<RelayResource>) =>
  ({
    ...{ alive: true, seenAt: at('12:59:20') },
    relays: [{ available: true, since: at('09:00:00'), lastOutage: null, ...relay }],
  }) as NodeResource
const hour = chooseRange(new URLSearchParams())
const shadedAt = (page: Html) =>
  [...page.text.matchAll(/<rect class="outage"[^>]*><title>([^<]*)<\/title>/g)].map((match) => match[1])

test('the minutes of an outage are shaded: its first, its last, and those until now while it lasts', () => {
  const over = { relay: 'a.test:25', from: at('12:10:50'), until: at('12:12:00'), reason: 'x' }
  assert.deepEqual(shadedAt(emailsChart(activity([]), hour, { now, nodes: [node({})], outages: [over] })), [
    '12:10: relay down',
    '12:11: relay down',
    '12:12: relay down',
  ])
  const lasting = node({ available: false, since: at('12:58:00') })
  assert.deepEqual(shadedAt(emailsChart(activity([]), hour, { now, nodes: [node({}), lasting], outages: [] })), [
    '12:58: relay down',
    '12:59: relay down',
  ])
  const dead = { ...node({ available: false, since: at('12:20:00') }), alive: false, seenAt: at('12:20:30') }
  assert.deepEqual(shadedAt(emailsChart(activity([]), hour, { now, nodes: [dead], outages: [] })), [
    '12:20: relay down',
  ])
  assert.deepEqual(shadedAt(emailsChart(activity([]), hour, { now, nodes: [node({})], outages: [] })), [])
})

test('half of the times stand in front of 95 %, from the same line, below a scale that fits the larger', () => {
  const item = { ...counts, at: at('12:59:00'), p50Ms: 100, p95Ms: 400 }
  const page = activityCharts(activity([item]), hour, { now, nodes: [], outages: [] }).text
  const drawn = [...page.matchAll(/class="(c-most|c-time)" x="590" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"/g)]
  assert.deepEqual(
    drawn.map(([, name, y, height]) => [name, Number(y), Number(height)]),
    [
      ['c-most', 0, 100],
      ['c-time', 75, 25],
    ],
  )
})

test('without a time there is no chart of times', () => {
  const item = { ...counts, at: at('12:59:00'), delivered: 3 }
  assert.doesNotMatch(activityCharts(activity([item]), hour, { now, nodes: [], outages: [] }).text, /Time to relay/)
})

test('reports have a chart of their own, in the hour in which they came, and none without a report', () => {
  const quiet = { ...counts, at: at('12:58:00'), delivered: 3 }
  const page = (items: Activity['items']) => activityCharts(activity(items), hour, { now, nodes: [], outages: [] }).text
  assert.doesNotMatch(page([quiet]), /Reports after delivery/)
  const reported = { ...counts, at: at('12:59:00'), bounced: { no_mailbox: 2, policy: 1 }, complained: 1 }
  const text = page([quiet, reported])
  assert.match(text, /Reports after delivery by minute \(UTC\)/)
  assert.match(text, /<title>12:59: 3 bounced<\/title>/)
  assert.match(text, /<title>12:59: 1 complaints<\/title>/)
})

test('what happened in one minute is stacked: each part stands on the one before', () => {
  const items = [{ ...counts, at: at('12:30:00'), delivered: 3, expired: 1 }]
  const { text } = emailsChart(activity(items), hour, { now, nodes: [], outages: [] })
  const bars = [
    ...text.matchAll(/<rect class="(?!outage)[^"]*" x="[^"]*" y="([\d.]+)" width="[^"]*" height="([\d.]+)"><title>/g),
  ]
  const parts = bars.map(([, y, height]) => ({ y: Number(y), height: Number(height) }))
  assert.equal(parts.length, 2)
  const [first, second] = parts
  assert.ok(first && second)
  assert.ok(Math.abs(second.y + second.height - first.y) < 0.2, JSON.stringify(parts))
})

test('a scale is labelled in whole numbers: one that ends at 1 has no half', () => {
  const ticks = (delivered: number) => {
    const items = [{ ...counts, at: at('12:30:00'), delivered }]
    const { text } = emailsChart(activity(items), hour, { now, nodes: [], outages: [] })
    return [...(/<div class="ticks"[^>]*>(.*?)<\/div>/.exec(text)?.[1] ?? '').matchAll(/<span>([^<]*)</g)].map(
      ([, label]) => label,
    )
  }
  assert.deepEqual(
    [ticks(1), ticks(2)],
    [
      ['1', '', '0'],
      ['2', '1', '0'],
    ],
  )
})

test('each relay and each key has a chart, the busiest first, six at most', () => {
  const relays = {
    'a.test:25': { delivered: 1, deferred: 0, failed: 0 },
    'b.test:25': { delivered: 3, deferred: 9, failed: 1 },
  }
  const keys = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`key_${n}`, n + 1]))
  const item = { ...counts, relays, keys, at: at('12:59:00') }
  const both = activity([item], { ...counts, relays, keys })
  const titles = (page: Html) => [...page.text.matchAll(/<h2>([^<]*)<\/h2>/g)].map(([, title]) => title)
  const charts = relayCharts(both, hour, { now, nodes: [], outages: [] })
  assert.deepEqual(titles(charts), ['Attempts at b.test:25 by minute (UTC)', 'Attempts at a.test:25 by minute (UTC)'])
  assert.match(charts.text, /c-deferred/)
  const down = node({ name: 'a.test:25', available: false, since: at('12:59:00') })
  assert.deepEqual(
    shadedAt(relayCharts(both, hour, { now, nodes: [down], outages: [] })),
    ['12:59: relay down'],
    'its own alone',
  )
  const byKey = keyCharts(both, hour, now, new Map([['key_7', 'production']]))
  assert.equal(titles(byKey).length, 6)
  assert.equal(titles(byKey)[0], 'Accepted with production by minute (UTC)')
  assert.equal(relayCharts(activity([]), hour, { now, nodes: [], outages: [] }).text, '')
})
