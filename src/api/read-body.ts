/**
 * Reads a request's body up to its limit. What is longer is thrown away as it comes, up to a
 * second limit, so that the client gets to read its 400 on an orderly connection; memory stays
 * bounded either way.
 */
import type { Readable } from 'node:stream'
import { bodyBytesMax } from '../email/email-request.ts'

const discardBytesMax = 1024 * 1024

/** The body's bytes; null where there were more than `bodyBytesMax`. Rejects where the client left. */
export function readBody(stream: Readable): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= bodyBytesMax) chunks.push(chunk)
      if (length > discardBytesMax) {
        stream.pause()
        resolve(null)
      }
    })
    stream.once('end', () => resolve(length > bodyBytesMax ? null : Buffer.concat(chunks)))
    stream.once('error', reject)
    stream.once('aborted', () => reject(new Error('the client left before its body was read')))
  })
}
