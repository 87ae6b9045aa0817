/** Server-sent events to open pages. A stream has one topic, and hears that something of it changed. */
import type { ServerResponse } from 'node:http'

/** Several changes at once are one signal. */
const signalAfterMs = 150
export const streamsMax = 200
const streamsPerPersonMax = 32

type Stream = {
  readonly topic: string
  readonly response: ServerResponse
  /** The person who watches. */
  readonly person: string
  readonly isSignedIn: () => Promise<boolean>
  timer: NodeJS.Timeout | undefined
}

export class Streams {
  readonly #streams = new Set<Stream>()
  readonly #onFirst: () => void
  readonly #onLast: () => void
  #isClosed = false

  /** @param on called when the first stream opens, and when the last one has ended */
  constructor(on: { readonly first: () => void; readonly last: () => void }) {
    this.#onFirst = on.first
    this.#onLast = on.last
  }

  get areOpen(): boolean {
    return this.#streams.size > 0
  }

  get topics(): ReadonlySet<string> {
    return new Set([...this.#streams].map(({ topic }) => topic))
  }

  isFullFor(person: string): boolean {
    const own = [...this.#streams].filter((stream) => stream.person === person)
    return this.#streams.size >= streamsMax || own.length >= streamsPerPersonMax
  }

  open(response: ServerResponse, watch: Pick<Stream, 'topic' | 'person' | 'isSignedIn'>): void {
    const stream: Stream = { ...watch, response, timer: undefined }
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    response.write('retry: 3000\n\n')
    if (this.#isClosed) return void response.end() // it came while the listener was closing
    const isFirst = !this.areOpen
    this.#streams.add(stream)
    response.once('close', () => this.#remove(stream))
    if (isFirst) this.#onFirst()
  }

  /** @param spreadMs the signals are spread over this time, so that not all pages fetch themselves at once */
  signal(topic: string, spreadMs = 0): void {
    for (const stream of this.#streams) {
      if (stream.topic !== topic) continue
      stream.timer ??= setTimeout(
        () => {
          stream.timer = undefined
          stream.response.write('event: changed\ndata:\n\n')
        },
        signalAfterMs + Math.random() * spreadMs,
      )
    }
  }

  /** Keeps proxies from closing the streams, and ends those whose session has ended. */
  async ping(): Promise<void> {
    // One after another, so that many streams are no load at once.
    for (const stream of [...this.#streams]) {
      const isSignedIn = await stream.isSignedIn().catch(() => true)
      if (!this.#streams.has(stream)) continue // it ended meanwhile
      if (isSignedIn) stream.response.write(': ping\n\n')
      else this.#end(stream)
    }
  }

  /** Ends all streams, so that the listener can close. */
  close(): void {
    this.#isClosed = true
    for (const stream of this.#streams) this.#end(stream)
  }

  /** Nothing is written to it from now on: a response that has ended answers a write with an error. */
  #end(stream: Stream): void {
    this.#remove(stream)
    stream.response.end()
  }

  #remove(stream: Stream): void {
    clearTimeout(stream.timer)
    if (this.#streams.delete(stream) && !this.areOpen) this.#onLast()
  }
}
