/**
 * Gets a text from a server of a mail service, which a call has named: the certificate of a signature, or a
 * confirmation. Bounded in time and size, without redirects, and at most so many in a minute, because the
 * call has not proved itself yet.
 */
import { Agent, get } from 'node:https'
import { hourMs, minuteMs } from '../../domain/duration.ts'
import type { Ask } from '../../services/event-proof.ts'
import { ownProxies } from '../../services/proxies.ts'

const timeoutMs = 5_000
const textMax = 65_536
const keptMax = 20
const keptMs = hourMs
const asksMax = 30

type Kept = { readonly text: string; readonly atMs: number }

/** @param server in place of the one that is named, with its certificate authority; for tests */
export function newAsk(server: { readonly port: number; readonly ca: string } | null = null): Ask {
  const kept = new Map<string, Kept>()
  let [asked, sinceMs] = [0, Number.NEGATIVE_INFINITY]
  return async (url) => {
    const now = performance.now()
    const known = kept.get(url)
    if (known !== undefined && now - known.atMs < keptMs) return known.text
    if (now - sinceMs >= minuteMs) [asked, sinceMs] = [0, now]
    if (++asked > asksMax) return null
    const text = await getText(new URL(url), server)
    // A known certificate stays for its hour, whatever else is asked for.
    for (const [old, { atMs }] of kept) if (now - atMs >= keptMs) kept.delete(old)
    if (text !== null && kept.size < keptMax) kept.set(url, { text, atMs: now })
    return text
  }
}

function getText(url: URL, server: Parameters<typeof newAsk>[0]): Promise<string | null> {
  const connection = server === null ? {} : { hostname: '127.0.0.1', servername: url.hostname, ...server }
  return new Promise((resolve) => {
    // A proxy that does not answer is no connection yet, so the signal alone would not end the wait.
    const signal = AbortSignal.timeout(timeoutMs)
    signal.addEventListener('abort', () => resolve(null))
    const options = {
      ...connection,
      agent: new Agent(ownProxies()),
      minVersion: 'TLSv1.2',
      signal,
    } as const
    get(url, options, async (response) => {
      const chunks: Buffer[] = []
      let size = 0
      try {
        for await (const chunk of response as AsyncIterable<Buffer>) {
          size += chunk.length
          if (size > textMax) break
          chunks.push(chunk)
        }
      } catch {
        return resolve(null) // it was cut off
      }
      resolve(response.statusCode === 200 && size <= textMax ? Buffer.concat(chunks).toString() : null)
    }).on('error', () => resolve(null))
  })
}
