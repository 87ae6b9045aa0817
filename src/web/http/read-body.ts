/**
 * Reads a request's body up to its limit. Bytes beyond the limit are discarded as they arrive, so that
 * the client can read its 400 on an orderly connection. Memory is bounded, however small the chunks are (each
 * buffer of Node takes some 100 bytes of its own), and the listener's timeout for a whole request bounds the
 * time.
 */
import type { Readable } from 'node:stream'

/** The body's bytes; null if there were more than `bytesMax`. Rejects if the client disconnects. */
export function readBody(stream: Readable, bytesMax: number): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0)
    let length = 0
    stream.on('data', (chunk: Buffer) => {
      const begin = length
      length += chunk.length
      if (length > bytesMax) return
      if (begin === 0) {
        bytes = chunk // mostly the whole body
        return
      }
      if (length > bytes.length) {
        const larger = Buffer.allocUnsafe(Math.min(bytesMax, 2 * length))
        bytes.copy(larger, 0, 0, begin)
        bytes = larger
      }
      chunk.copy(bytes, begin)
    })
    stream.once('end', () => resolve(length > bytesMax ? null : bytes.subarray(0, length)))
    stream.once('error', reject)
  })
}
