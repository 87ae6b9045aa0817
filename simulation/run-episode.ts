/** Starts one run in a thread of its own. */
import { Worker } from 'node:worker_threads'
import type { EpisodeOrder, EpisodeResult } from './episode.ts'

/** @param onLine is called with each line of the trace, if the order asks for it */
export function runEpisode(order: EpisodeOrder, onLine: (line: string) => void = () => {}): Promise<EpisodeResult> {
  const worker = new Worker(new URL('./episode.ts', import.meta.url), { workerData: order })
  return new Promise((resolve, reject) => {
    worker.on('message', (message: string | EpisodeResult) => {
      if (typeof message === 'string') return onLine(message)
      resolve(message)
      void worker.terminate()
    })
    worker.on('error', reject)
    worker.on('exit', () => reject(new Error(`the run of seed ${order.seed} ended without a result`)))
  })
}
