/** `fetch` of a token: no redirect is followed, and no more is read than a token needs. */
import type { CustomFetch } from 'openid-client'

const answerMax = 65_536

export const boundedFetch: CustomFetch = async (url, { body, headers: sent, method, signal }) => {
  const response = await fetch(url, {
    ...{ body: body as NonNullable<RequestInit['body']>, headers: sent, method, redirect: 'manual' },
    ...(signal !== undefined && { signal }),
  })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > answerMax) throw new Error('the answer is too long')
    chunks.push(chunk)
  }
  const headers = new Headers(response.headers)
  headers.delete('www-authenticate') // the library would read the refusal from it and not from the body
  return new Response(Buffer.concat(chunks), { status: response.status, headers })
}
