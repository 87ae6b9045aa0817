/** The operations that a page of the console calls, recorded by running the page. */
import { composeManagement } from '../../src/compose/management.ts'
import { operatorBodyBytesMax } from '../../src/domain/bounds.ts'
import { newFingerprints } from '../../src/management/fingerprints.ts'
import type { OperationName, OperationRunner } from '../../src/management/operations.ts'
import { newLocalRunner } from '../../src/management/perform.ts'
import { newListener } from '../../src/web/http/listener.ts'
import { Live } from '../../src/web/operators/console/live.ts'
import { addRoutes } from '../../src/web/operators/console/pages/routes.ts'
import { newTurns } from '../../src/web/operators/console/turns.ts'
import { newFormNonces } from '../../src/web/operators/form-nonces.ts'
import { OperatorRates } from '../../src/web/operators/rates.ts'
import { devSession } from '../../src/web/operators/session.ts'
import type { TestService } from './service.ts'

/** Pages beside those of a service, for an admin of the whole service. */
export function newRecorder({ config, events, store }: TestService) {
  const management = composeManagement(config, { store, version: 'test' })
  const { consoleUrl, queueMax } = management
  const called: OperationName[] = []
  const pages = newListener({
    emit: () => {},
    isProxy: () => true,
    bodyBytesMax: operatorBodyBytesMax,
    notFound: (_request, reply) => reply.code(404).send(),
  })
  addRoutes(pages, {
    newRunner: (access): OperationRunner => {
      const { call } = newLocalRunner(management, access)
      return {
        call: (name, input) => {
          called.push(name)
          return call(name, input)
        },
      }
    },
    now: () => store.now(),
    forms: newFormNonces(store),
    readSession: devSession,
    isDev: true,
    live: new Live(newFingerprints(management), events),
    shell: { version: 'test', apiUrl: '', consoleUrl, queueMax, linksUrl: null, hasInbox: false },
    rates: new OperatorRates(),
    takeTurn: newTurns(1),
  })
  return async (
    method: 'GET' | 'POST',
    url: string,
    fields: Readonly<Record<string, string>> = {},
  ): Promise<readonly OperationName[]> => {
    called.length = 0
    const form = {
      payload: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
    }
    await pages.inject({ method, url, ...(method === 'POST' && form) })
    return [...new Set(called)]
  }
}
