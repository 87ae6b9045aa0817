/**
 * Reads a request's body up to its limit. Bytes beyond the limit are discarded as they arrive, so that
 * the client can read its 400 on an orderly connection. Memory is bounded, and the listener's timeout
 * for a whole request bounds the time.
 */
import type { Readable } from 'node:stream'

/** The body's bytes; null if there were more than `bytesMax`. Rejects if the client disconnects. */
export function readBody(stream: Readable, bytesMax: number): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= bytesMax) chunks.push(chunk)
    })
    stream.once('end', () => resolve(length > bytesMax ? null : Buffer.concat(chunks)))
    stream.once('error', reject)
  })
}
