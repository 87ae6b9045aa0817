/**
 * The load loop for all servers and senders: a number of clients, in a closed loop (the next request after
 * the answer) or an open loop (requests at a fixed rate, independent of the answers). In an open loop
 * latency counts from the time a request was due, so that a stall also counts for the requests it delayed
 * (coordinated omission).
 */

export type LoopOrder = {
  readonly clients: number
  readonly ms: number
  /** Requests per second in an open loop; null for a closed loop. */
  readonly rate: number | null
  /** Number of the first request. Each request adds 1. */
  readonly serial: number
}

export type LoopResult = {
  readonly perSecond: number
  readonly answers: Readonly<Record<string, number>>
  readonly p50Ms: number
  readonly p99Ms: number
  /** When request `serial` was due, on the clock that all processes of a machine share. */
  readonly begunAtMs: number
}

/** CLOCK_MONOTONIC: the same in all processes of a machine. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

export const percentile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** `ask` sends request number `n` on the connection of `client` and returns its answer. */
export async function runLoop(
  { clients, ms, rate, serial }: LoopOrder,
  ask: (client: number, n: number) => Promise<string>,
): Promise<LoopResult> {
  const answers: Record<string, number> = {}
  const latencies: number[] = []
  const begunAtMs = monotonicMs()
  const endMs = begunAtMs + ms
  let offered = 0
  const work = async (client: number) => {
    for (;;) {
      const k = offered++
      const dueMs = rate === null ? monotonicMs() : begunAtMs + (k * 1000) / rate
      if (dueMs >= endMs) return
      for (let waitMs = dueMs - monotonicMs(); waitMs > 0; waitMs = dueMs - monotonicMs())
        await new Promise((resolve) => setTimeout(resolve, waitMs))
      const answer = await ask(client, serial + k)
      answers[answer] = (answers[answer] ?? 0) + 1
      latencies.push(monotonicMs() - dueMs)
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => work(client)))
  return {
    perSecond: (latencies.length * 1000) / (monotonicMs() - begunAtMs),
    answers,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    begunAtMs,
  }
}
