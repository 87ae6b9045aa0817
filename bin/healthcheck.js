// The health check of the container image: ends with 0 if this machine's `/livez` answers 200.
const [, host = '127.0.0.1', port = '4023'] = /^(.+):(\d+)$/.exec(process.env.POSTERN_OPS_LISTEN ?? '') ?? []
const ownName = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }[host] ?? host
const answer = await fetch(`http://${ownName}:${port}/livez`, { signal: AbortSignal.timeout(2000) }).catch(
  (error) => error,
)
if (answer.status !== 200) {
  console.error(`/livez on ${ownName}:${port}: ${answer.status ?? answer.message}`)
  process.exitCode = 1
}
