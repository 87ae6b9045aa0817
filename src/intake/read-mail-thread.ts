/** The thread of `mail-reader.ts`: reads one message after another, and says when it begins. */
import { parentPort } from 'node:worker_threads'
import { readMail } from './read-mail.ts'

parentPort?.on('message', async ({ bytes, to }: { readonly bytes: Uint8Array; readonly to: string | null }) => {
  parentPort?.postMessage('begun')
  parentPort?.postMessage(await readMail(Buffer.from(bytes), to))
})
