/**
 * The test side of an app: what its test keys send for. It has the settings of the app under an id of its
 * own, so its limits, counts, turns and suppressions are its own, too. Its mail goes to no relay: the
 * recipient chooses the outcome.
 *
 *     bounced+ada@postern.test    accepted by the relay, and reported as bounced
 */
import type { AppId } from '../id.ts'
import { type EmailAddress, limitAddress } from '../request/email-address.ts'

/** Reserved by RFC 6761, so that no mail server has it. */
export const testDomain = 'postern.test'

/** The transport of every test side. No stored transport can have this name. */
export const simulatedTransport = ':simulated'

/** The name of the relay of every test side. */
export const simulatedRelay = 'simulated'

export const testSide = (app: AppId): AppId => app.replace(/^app_/, 'test_') as AppId

/** The app itself, of either side. */
export const realSide = (app: AppId): AppId => app.replace(/^test_/, 'app_') as AppId

/** The side of an app that a key sends for. */
export const sideOf = ({ app, isTest }: { readonly app: AppId; readonly isTest: boolean }): AppId =>
  isTest ? testSide(app) : app

/** The ids of test sides are above those of apps. */
export const firstTestSide = 'test_'

export const isTestSide = (app: AppId): boolean => app.startsWith(firstTestSide)

export const simulatedOutcomes = [
  'delivered',
  'bounced',
  'complained',
  'refused',
  'deferred',
  'expired',
  'suppressed',
  'slow',
] as const
export type SimulatedOutcome = (typeof simulatedOutcomes)[number]

/** By the local part up to its `+`; null for an address that chooses none. */
export function readSimulatedOutcome(to: EmailAddress): SimulatedOutcome | null {
  const [local = '', domain] = limitAddress(to).split('@')
  const name = local.replace(/\+.*/, '')
  return domain === testDomain ? (simulatedOutcomes.find((outcome) => outcome === name) ?? null) : null
}
