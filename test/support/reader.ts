/** Everything that an operator can read of a running process: pages, streams, the management API. */
import assert from 'node:assert/strict'
import { findOperation, operationNames } from '../../src/management/operations.ts'
import { routes } from '../../src/web/operators/console/pages/routes.ts'
import { postern, posternJson, type RunningPostern } from './cli.ts'
import { atEnd, type Scope } from './temporary.ts'
import { eventually } from './wait.ts'

export type Reader = Awaited<ReturnType<typeof newReader>>
type Values = Readonly<Record<string, readonly string[]>>

/** A path with each value of its parameter, which is `:name` or `{name}`. */
function fillPath(path: string, values: Values): string[] {
  const [parameter, colon, brace] = /:(\w+)|\{(\w+)\}/.exec(path) ?? []
  if (parameter === undefined) return [path]
  const known = values[colon ?? brace ?? ''] ?? []
  return known.flatMap((value) => fillPath(path.replace(parameter, value), values))
}

export async function newReader(scope: Scope, { console: base, env }: RunningPostern) {
  const [, code = ''] = (await postern(env, ['console', 'login'])).out.trim().split('#')
  const signedIn = await fetch(`${base}/sign-in`, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ code }),
    redirect: 'manual',
  })
  const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const { token } = await posternJson<{ token: string }>(env, ['token', 'create', 'reader', '--role', 'admin'])
  const asPerson = { accept: 'text/html', cookie }
  const asProgram = { authorization: `Bearer ${token}` }
  const read = (path: string, headers: Record<string, string>): Promise<string> =>
    eventually(async () => {
      const answer = await fetch(`${base}${path}`, { headers })
      const text = await answer.text()
      if (answer.status === 429) return null
      assert.equal(answer.status, 200, `${path}: ${text}`)
      return text
    })
  const readAll = async (paths: readonly string[], headers: Record<string, string>) => {
    const texts: [path: string, text: string][] = []
    for (const path of paths) texts.push([path, await read(path, headers)])
    return texts
  }
  /** All pages, and all that the management API lists and shows, by address. */
  async function readEverything(refusals: number): Promise<[path: string, text: string][]> {
    type List = { items: Record<string, string>[] }
    const list = async (path: string, field = 'id') =>
      (JSON.parse(await read(path, asProgram)) as List).items.map((item) => item[field] ?? '')
    const requests = () => list('/v1/refusals?app=acme', 'requestId')
    const values = {
      app: ['acme'],
      email: await list('/v1/emails'),
      key: await list('/v1/apps/acme/keys'),
      person: await list('/v1/people'),
      request: await eventually(async () => ((await requests()).length === refusals ? requests() : null)),
      system: ['supabase', 'kratos', 'zitadel', 'logto'],
    }
    const lines = routes.map(([line]) => line).filter((line) => line.startsWith('GET '))
    const pages = lines.flatMap((line) => fillPath(line.slice(4), values))
    const answers = operationNames
      .map(findOperation)
      .filter(({ method, path }) => method === 'GET' && !/\/(made|wait)$/.test(path)) // nothing is waited for
      .flatMap(({ path }) => fillPath(path, values))
    return [...(await readAll(pages, asPerson)), ...(await readAll(answers, asProgram))]
  }
  /** Opens a stream; returns all of it so far. */
  async function watch(topic: string): Promise<() => string> {
    const left = new AbortController()
    atEnd(scope, () => left.abort())
    const { body, status } = await fetch(`${base}/live?topic=${topic}`, {
      headers: asPerson,
      signal: left.signal,
    })
    assert.ok(body && status === 200, topic)
    let text = ''
    const collect = async () => {
      for await (const chunk of body.pipeThrough(new TextDecoderStream())) text += chunk
    }
    collect().catch(() => {}) // the test has ended
    return () => text
  }
  return { readEverything, watch }
}
