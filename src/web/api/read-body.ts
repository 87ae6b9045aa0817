/**
 * Reads a request's body up to its limit. What is longer is thrown away as it comes, so that the
 * client gets to read its 400 on an orderly connection; memory stays bounded, and the listener's
 * time for a whole request bounds the rest.
 */
import type { Readable } from 'node:stream'
import { bodyBytesMax } from '../../domain/request/email-request.ts'

/** The body's bytes; null where there were more than `bodyBytesMax`. Rejects where the client left. */
export function readBody(stream: Readable): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= bodyBytesMax) chunks.push(chunk)
    })
    stream.once('end', () => resolve(length > bodyBytesMax ? null : Buffer.concat(chunks)))
    stream.once('error', reject)
    stream.once('aborted', () => reject(new Error('the client left before its body was read')))
  })
}
