import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AlertState, checkAlerts, noAlerts, stepAlerts, withoutSent, writeAlert } from './alerts.ts'

const second = 1000
const outage = {
  kind: 'no_relay',
  message: 'Nothing has been delivered since 11:38:06Z.',
  apps: [],
  urgent: true,
} as const
const limit = (...apps: string[]) =>
  ({ kind: 'daily_limit_near', message: `${apps} near`, apps, urgent: false }) as const

/** Looks every ten seconds, and sends what is due. */
function newWatch() {
  let [state, nowMs]: [AlertState, number] = [noAlerts, 1_000_000_000]
  return {
    look(
      found: Parameters<typeof stepAlerts>[1],
      { accepts = true, afterMs = 10 * second, isUnknown = () => false }: Looking = {},
    ) {
      nowMs += afterMs
      const step = stepAlerts(state, found, nowMs, isUnknown)
      state = accepts ? withoutSent(step.state, new Set(step.due.map(({ id }) => id))) : step.state
      return step.due.map(({ apps, kind, message, type }) => [type, kind, apps.join(), message])
    },
    state: () => state,
    check: () => checkAlerts(state, nowMs),
  }
}
type Looking = {
  readonly accepts?: boolean
  readonly afterMs?: number
  readonly isUnknown?: Parameters<typeof stepAlerts>[3]
}

test('a condition is alerted of when it begins and when it has ended, once each', () => {
  const { look } = newWatch()
  assert.deepEqual(look([]), [])
  assert.deepEqual(look([outage]), [], 'a moment')
  assert.deepEqual(look([outage]), [['alert.began', 'no_relay', '', outage.message]])
  for (let n = 0; n < 12; n++) assert.deepEqual(look([{ ...outage, message: `for ${n} min` }]), [])
  for (let n = 0; n < 5; n++) assert.deepEqual(look([]), [], 'it may come back')
  const [ended, ...others] = [look([]), look([]), look([])].flat()
  assert.deepEqual(ended?.slice(0, 3), ['alert.ended', 'no_relay', ''])
  assert.match(`${ended?.[3]}`, /^Over after 2 min: for \d+ min$/)
  assert.deepEqual(others, [])
  assert.equal([look([outage]), look([outage])].flat().length, 1, 'it begins anew')
  look([limit('acme')])
  const moment = Array.from({ length: 9 }, () => look([])).flat()
  assert.deepEqual(
    moment.map(([type, kind]) => [type, kind]),
    [['alert.ended', 'no_relay']],
    'a moment has no end',
  )
})

test('one that comes and goes within a minute is one alert', () => {
  const { look } = newWatch()
  const alerts = Array.from({ length: 40 }, (_, n) => look(n % 4 === 0 ? [outage] : [])).flat()
  assert.equal(alerts.length, 1)
})

test('an app that joins a condition is alerted of, and the others are not again; each ends by itself', () => {
  const { look } = newWatch()
  look([limit('acme')])
  assert.deepEqual(look([limit('acme')]), [['alert.began', 'daily_limit_near', 'acme', 'acme near']])
  look([limit('acme', 'globex')])
  assert.deepEqual(
    look([limit('acme', 'globex')]).map(([, , apps]) => apps),
    ['acme,globex'],
  )
  const ended = Array.from({ length: 9 }, () => look([limit('globex')])).flat()
  assert.deepEqual(
    ended.map(([type, , apps]) => [type, apps]),
    [['alert.ended', 'acme']],
  )
})

test('an alert that is not accepted is sent again after a minute, for a day; others wait no longer for it', () => {
  const { look, state } = newWatch()
  look([outage, limit('acme')])
  assert.equal(look([outage], { accepts: false }).length, 1)
  assert.equal(look([outage], { accepts: false }).length, 0, 'it may be under way')
  assert.equal(look([outage, limit('acme')]).length, 1)
  assert.equal(look([outage, limit('acme')], { afterMs: 60 * second, accepts: false }).length, 1)
  assert.equal(look([outage, limit('acme')], { afterMs: 60 * second }).length, 1)
  assert.deepEqual(state().pending, [])
  look([], { accepts: false })
  look([], { accepts: false, afterMs: 70 * second })
  assert.equal(state().pending.length, 2)
  look([], { accepts: false, afterMs: 25 * 3600 * second })
  assert.deepEqual(state(), noAlerts)
})

test('an end waits until the receiver has accepted its beginning', () => {
  const { look } = newWatch()
  look([outage, limit('acme')])
  assert.equal(look([outage, limit('acme')], { accepts: false }).length, 2)
  const refused = Array.from({ length: 12 }, () => look([limit('acme')], { accepts: false })).flat()
  assert.ok(
    refused.every(([type]) => type === 'alert.began'),
    'the end is not tried',
  )
  const accepted = Array.from({ length: 14 }, () => look([limit('acme')])).flat()
  assert.deepEqual(accepted.map(([type, kind]) => `${type} ${kind}`).toSorted(), [
    'alert.began daily_limit_near',
    'alert.began no_relay',
    'alert.ended no_relay',
  ])
  const [began, ended] = ['alert.began', 'alert.ended'].map((type) =>
    accepted.findIndex((alert) => alert[0] === type && alert[1] === 'no_relay'),
  )
  assert.ok(Number(began) < Number(ended))
})

test('after the clock was set back, an alert is sent again, an outage begins, and it ends', () => {
  const back = { afterMs: -3600 * second }
  const { look } = newWatch()
  look([outage])
  assert.equal(look([outage], { accepts: false }).length, 1)
  assert.equal(look([outage], back).length, 1, 'it was claimed in the future')
  const quiet = Array.from({ length: 9 }, () => look([])).flat()
  assert.deepEqual(
    quiet.map(([type]) => type),
    ['alert.ended'],
  )
  look([outage])
  assert.equal(look([outage]).length, 1)
  assert.equal(look([], back).length, 0)
  assert.equal(Array.from({ length: 9 }, () => look([])).flat().length, 1, 'it was seen in the future')
})

test('an outage has not ended while nobody can say so', () => {
  const { look } = newWatch()
  look([outage])
  look([outage])
  const isUnknown = ({ kind }: { readonly kind: string }) => kind === 'no_relay'
  assert.deepEqual(Array.from({ length: 30 }, () => look([], { isUnknown })).flat(), [])
  assert.equal(Array.from({ length: 9 }, () => look([])).flat().length, 1)
})

test('alerts that wait for the receiver are a finding', () => {
  const { check, look } = newWatch()
  look([outage])
  look([outage], { accepts: false })
  assert.equal(check().ok, true)
  for (let n = 0; n < 20; n++) look([outage], { accepts: false })
  assert.match(check().detail, /^1 alert has waited up to 3 min for the receiver \(POSTERN_ALERTS_URL\)/)
  look([outage], { afterMs: 60 * second })
  assert.equal(check().ok, true)
})

test('a receiver that fails for long keeps no more than 100 alerts, and a state that stays the same is not written', () => {
  const { look, state } = newWatch()
  for (let n = 0; n < 150; n++) {
    look([limit(`app${n}`)], { accepts: false })
    look([limit(`app${n}`)], { accepts: false })
  }
  assert.equal(state().pending.length, 100)
  const quiet = newWatch()
  for (let n = 0; n < 4; n++) quiet.look([outage])
  const before = quiet.state()
  quiet.look([outage], { afterMs: 5 * second })
  assert.equal(quiet.state().open, before.open)
})

test('the body has the alert as text, for chats, and as data', () => {
  const noted = stepAlerts(noAlerts, [outage], 1_700_000_000_000 - 10 * second)
  const [began] = stepAlerts(noted.state, [outage], 1_700_000_000_000).due
  assert.ok(began)
  assert.deepEqual(JSON.parse(writeAlert(began, 'https://console.acme.test')), {
    type: 'alert.began',
    timestamp: '2023-11-14T22:13:20.000Z',
    text: `Postern, urgent: ${outage.message} https://console.acme.test`,
    data: { ...outage, subject: null, console: 'https://console.acme.test' },
  })
})

test('a condition that becomes urgent is alerted of again, and two of one kind each by itself', () => {
  const { look } = newWatch()
  const near = limit('acme')
  look([near])
  assert.equal(look([near]).length, 1)
  const [used, ...others] = look([{ ...near, message: 'acme used up', urgent: true }])
  assert.deepEqual([used?.[0], used?.[3], others], ['alert.began', 'acme used up', []])
  assert.deepEqual(look([{ ...near, urgent: true }]), [])
  const down = (subject: string) =>
    ({ kind: 'relay_down', message: `${subject} is down`, apps: [], urgent: false, subject }) as const
  const two = newWatch()
  two.look([down('r1')])
  assert.deepEqual(
    two.look([down('r1')]).map(([, , , message]) => message),
    ['r1 is down'],
  )
  two.look([down('r1'), down('r2')])
  assert.deepEqual(
    two.look([down('r1'), down('r2')]).map(([, , , message]) => message),
    ['r2 is down'],
  )
  const ended = Array.from({ length: 9 }, () => two.look([down('r2')])).flat()
  assert.match(`${ended[0]?.[3]}`, /^Over after \d+ s: r1 is down$/)
  assert.equal(ended.length, 1)
})

test('apps that a condition leaves at the same time have one end', () => {
  const { look } = newWatch()
  look([limit('acme', 'globex')])
  look([limit('acme', 'globex')])
  const ended = Array.from({ length: 9 }, () => look([])).flat()
  assert.deepEqual(
    ended.map(([type, , apps]) => [type, apps]),
    [['alert.ended', 'acme,globex']],
  )
})

test('one step posts five alerts at most, and the newest of too many are kept', () => {
  const names = Array.from({ length: 12 }, (_, n) => limit(`app${n}`))
  const { look } = newWatch()
  look(names)
  assert.deepEqual([look(names).length, look(names).length, look(names).length], [5, 5, 2])
  const failing = newWatch()
  const many = Array.from({ length: 110 }, (_, n) => limit(`app${n}`))
  failing.look(many, { accepts: false })
  failing.look(many, { accepts: false })
  assert.equal(failing.state().pending[0]?.apps[0], 'app10')
})

test('a condition that was there for a moment a day ago begins anew', () => {
  const { look } = newWatch()
  look([outage])
  assert.deepEqual(look([outage], { afterMs: 24 * 3600 * second }), [])
  assert.equal(look([outage]).length, 1)
})

test('a chat reads no mention and no link in the text', () => {
  const odd = { ...outage, message: 'the relay answers “<!channel> & <https://x.test|y>”' }
  const { state } = stepAlerts(noAlerts, [odd], 0)
  const [alert] = stepAlerts(state, [odd], 20 * second).due
  assert.ok(alert)
  const { data, text } = JSON.parse(writeAlert(alert, null))
  assert.equal(text, 'Postern, urgent: the relay answers “&lt;!channel&gt; &amp; &lt;https://x.test|y&gt;”')
  assert.equal(data.message, odd.message)
})
