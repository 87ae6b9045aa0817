/** A mail API over TLS that takes every email and keeps none, as a process of its own. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { SinkOrder } from './sink.ts'

const answer = '{"ErrorCode":0,"MessageID":"b7bc2f4a-e38e-4336-af7d-e6c392c2f817"}'
const read = (name: string) => readFileSync(new URL(`../test/support/tls/${name}`, import.meta.url))
const state = { delayMs: 0 }

const server = createServer(
  { cert: read('localhost.cert.pem'), key: read('localhost.key.pem') },
  (request, response) => {
    const take = () =>
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer)
    request.resume().on('end', () => (state.delayMs === 0 ? take() : setTimeout(take, state.delayMs)))
  },
)
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

process.on('message', ({ delayMs }: SinkOrder) => {
  state.delayMs = delayMs
  process.send?.({ taken: [] })
})
