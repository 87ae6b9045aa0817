// The health check of the container image: ends with 0 if this machine's `/livez` answers 200.
const [, port = '4023'] = /:(\d+)$/.exec(process.env.POSTERN_OPS_LISTEN ?? '') ?? []
const answer = await fetch(`http://127.0.0.1:${port}/livez`, { signal: AbortSignal.timeout(2000) }).catch(
  (error) => error,
)
if (answer.status !== 200) {
  console.error(`/livez on port ${port}: ${answer.status ?? answer.message}`)
  process.exitCode = 1
}
