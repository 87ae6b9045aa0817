/** Runs operations over HTTP, by the management API of another process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isLoopback } from '../domain/client-network.ts'
import { toPrintableLine } from '../domain/controls.ts'
import { parseTokenHeader } from '../domain/operator/management-token.ts'
import type { Issue } from '../domain/parsed.ts'
import { done, type ErrorCode, type OperationError, type Result } from '../management/operation/result.ts'
import {
  type Answer,
  type CallInput,
  findOperation,
  type OperationName,
  type OperationRunner,
} from '../management/operations.ts'
import type { RawInput } from '../management/perform.ts'
import { readSecretFile } from './global-options.ts'
import { CommandFailed, UsageError } from './output.ts'

/** Longer than an operation takes: an export takes 20 s at most. */
const usualDeadlineMs = 30_000
/** The checks of the relays take up to 30 s. */
const checksDeadlineMs = 60_000
const triesMax = 5

type RemoteInput = RawInput & { readonly params?: Readonly<Record<string, string>> }

export type RemoteAddress = { readonly url: string; readonly tokenFile: string }

export function newRemoteRunner({ url, tokenFile }: RemoteAddress): OperationRunner {
  const base = parseBase(url)
  const token = readToken(tokenFile)
  return {
    call: async <Name extends OperationName>(name: Name, input: CallInput<Name>) => {
      const { method, path } = findOperation(name)
      const raw = input as RemoteInput
      const request = {
        method,
        headers: newHeaders(token, raw),
        ...(raw.body !== undefined && { body: JSON.stringify(raw.body) }),
        deadlineMs: name === 'checks.run' ? checksDeadlineMs : usualDeadlineMs,
      }
      const response = await sendWithinRate(`${base}${toAddress(path, raw)}`, request)
      return readAnswer<Answer<Name>>(base, response)
    },
  }
}

function parseBase(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.username !== '' || parsed.search !== '')
    throw new UsageError('--url must be the address of the management API, such as https://console.example.com')
  if (parsed.protocol === 'http:' && !isLoopback(parsed.hostname))
    throw new UsageError('--url must be https, except on this machine: the token would cross the network unencrypted')
  return `${parsed.origin}${parsed.pathname.replace(/(?:\/v1)?\/*$/, '')}`
}

function readToken(file: string): string {
  if (file === '')
    throw new UsageError(
      '--url needs --token-file (or POSTERN_TOKEN_FILE): a file with a management token ("postern token create" makes one)',
    )
  const token = readSecretFile(file, '--token-file').trim()
  if (token === '') throw new UsageError(`${file} is empty; it must hold a management token`)
  const { kind } = parseTokenHeader(`Bearer ${token}`)
  if (kind === 'other') throw new UsageError(`${file} holds a delivery key; commands need a management token (psa_…)`)
  if (kind !== 'secret') throw new UsageError(`${file} must contain only a management token: psa_ and 49 characters`)
  return token
}

function toAddress(path: string, { params = {}, query = {} }: RemoteInput): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => toSegment(params[name] ?? ''))
  const given = Object.entries(query as object).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return search === '' ? filled : `${filled}?${search}`
}

/** These would name another address: URLs know no way to write them. */
function toSegment(text: string): string {
  if (['', '.', '..'].includes(text)) throw new UsageError(`"${text}" is no name and no id`)
  return encodeURIComponent(text)
}

const newHeaders = (token: string, { body, ifVersion, ifAbsent = false }: RawInput): Record<string, string> => ({
  authorization: `Bearer ${token}`,
  ...(body !== undefined && { 'content-type': 'application/json' }),
  ...(ifVersion !== undefined && { 'if-match': `"${ifVersion}"` }),
  ...(ifAbsent && { 'if-none-match': '*' }),
})

type Request = RequestInit & { readonly deadlineMs: number }

/** Waits and sends again when the API answers 429, so that a command can read a long list. */
async function sendWithinRate(url: string, init: Request): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await send(url, init)
    const waitS = Number(response.headers.get('retry-after'))
    if (response.status !== 429 || tries === triesMax || !(waitS > 0)) return response
    await response.arrayBuffer()
    await sleep(waitS * 1000)
  }
}

async function send(url: string, { deadlineMs, ...init }: Request): Promise<Response> {
  try {
    return await fetch(url, { ...init, redirect: 'error', signal: AbortSignal.timeout(deadlineMs) })
  } catch (error) {
    const { cause, message, name } = error as Error
    if (name === 'TimeoutError')
      throw new CommandFailed(
        `${new URL(url).origin} accepts connections but did not answer within ${deadlineMs / 1000} s: the process or its database hangs`,
      )
    const reason = cause instanceof Error ? cause.message : message
    throw new CommandFailed(
      `${new URL(url).origin} does not answer (${reason}): is POSTERN_URL right, and is "postern serve" running there with the console role?`,
    )
  }
}

/** The error of another process, whose words the command prints. */
function readError(given: unknown): OperationError | undefined {
  const { code, message, issues } = (given ?? {}) as Readonly<Record<string, unknown>>
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  const listed = Array.isArray(issues) ? (issues as readonly Issue[]) : []
  return {
    code: code as ErrorCode,
    message: toPrintableLine(message),
    issues: listed.map((issue) => ({
      field: toPrintableLine(String(issue?.field)),
      code: String(issue?.code),
      message: toPrintableLine(String(issue?.message)),
    })),
  }
}

async function readAnswer<T>(base: string, response: Response): Promise<Result<T>> {
  const answer = (await response.json().catch(() => null)) as Record<string, unknown> | null
  if (response.ok && answer !== null) return done(answer as T, { created: response.status === 201 })
  const error = readError(answer?.error)
  if (error?.message.includes('POST /v1/email') && response.status === 404)
    throw new CommandFailed(
      `${base} is the public API; set --url to the POSTERN_CONSOLE_LISTEN address (port 4022 by default)`,
    )
  if (error === undefined)
    throw new CommandFailed(`${base} answered ${response.status} without a document: it is not the management API`)
  return { ok: false, error }
}
