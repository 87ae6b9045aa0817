import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AlertState, noAlerts, stepAlerts, withoutSent, writeAlert } from './alerts.ts'

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
  let [state, nowMs]: [AlertState, number] = [noAlerts, 1_000_000]
  return {
    look(found: Parameters<typeof stepAlerts>[1], { accepts = true, afterMs = 10 * second } = {}) {
      nowMs += afterMs
      const step = stepAlerts(state, found, nowMs)
      state = accepts ? withoutSent(step.state, new Set(step.due.map(({ id }) => id))) : step.state
      return step.due.map(({ apps, kind, message, type }) => [type, kind, apps.join(), message])
    },
    state: () => state,
  }
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
    data: { ...outage, console: 'https://console.acme.test' },
  })
})
