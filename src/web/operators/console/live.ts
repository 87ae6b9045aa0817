/**
 * Tells open pages that something changed: a page then fetches itself, so there is one renderer and no data
 * in the stream. It also fetches itself once when the stream opens, to catch changes made since it was
 * rendered. The topic `service` is everything that the overview shows: while somebody watches, it is read
 * once for all. An email, or the webhooks of an app, are read as well, and signalled at once if this process
 * itself changes them, like the dev inbox.
 */

import { LruMap } from '../../../domain/lru-map.ts'
import { Remembered } from '../../../domain/remembered.ts'
import type { Fingerprints } from '../../../management/fingerprints.ts'
import type { EventStream, PosternEvent } from '../../../observe/events.ts'
import type { Html } from '../../../templates/html.ts'
import { Streams, streamsMax } from './streams.ts'

/** Each change has all overviews drawn again, which takes time from requests for emails. */
const compareServiceEveryMs = 5000
const compareThingsEveryMs = 2000
/** Shorter than proxies wait; a session that ended ends its streams then. */
const pingEveryMs = 20_000
/** Not all overviews fetch themselves at the same moment. */
const spreadMs = 800
/** A shared part of a page is drawn anew after this long: `describeService` does not see every change. */
const shareMs = 5000
/** Parts of pages, for people of all apps and of some. */
const sharedMax = 1000
/** Pages of one thing: an email, or the webhooks of an app. */
const topicKinds = ['email', 'webhooks'] as const satisfies readonly (keyof Fingerprints['describe'])[]
type Topic = { readonly kind: (typeof topicKinds)[number]; readonly id: string }

/** `email:em_…`; null for another topic. */
export function readTopic(topic: string): Topic | null {
  const [, name, id = ''] = /^(\w+):(\w+)$/.exec(topic) ?? []
  const kind = topicKinds.find((known) => known === name)
  return kind === undefined ? null : { kind, id }
}

export class Live {
  readonly streams = new Streams({ first: () => this.#begin(), last: () => this.#stop() })
  readonly #fingerprints: Fingerprints
  /** End what is repeated while there is a stream. */
  #stops: readonly (() => void)[] = []
  #seenService = ''
  readonly #seenThings = new LruMap<string, string>(streamsMax)
  #shared = newShared()

  constructor(fingerprints: Fingerprints, events: EventStream) {
    this.#fingerprints = fingerprints
    events.subscribe((event) => {
      if (this.streams.areOpen) for (const topic of listTopics(event)) this.streams.signal(topic)
    })
  }

  /**
   * A part of a page that is the same for all who watch: it is drawn once for them, until something changes
   * or for five seconds.
   * While nobody watches, it is drawn for each.
   */
  share(name: string, draw: () => Promise<Html | null>): Promise<Html | null> {
    if (!this.streams.areOpen) return draw()
    return this.#shared.get(name, draw)
  }

  #begin(): void {
    this.#stops = [
      repeat(compareServiceEveryMs, () => this.#compareService()),
      repeat(compareThingsEveryMs, () => this.#compareThings()),
      repeat(pingEveryMs, () => this.streams.ping()),
    ]
  }

  #stop(): void {
    for (const stop of this.#stops) stop()
    this.#shared = newShared()
  }

  /** Another process may have changed one. The first comparison counts as a change. */
  async #compareThings(): Promise<void> {
    for (const topic of this.streams.topics) {
      const thing = readTopic(topic)
      if (thing === null) continue
      const seen = await this.#fingerprints.describe[thing.kind](thing.id).catch(() => '')
      if (this.#seenThings.get(topic) === seen) continue
      this.#seenThings.set(topic, seen)
      this.streams.signal(topic)
    }
  }

  async #compareService(): Promise<void> {
    if (!this.streams.topics.has('service')) return
    const seen = await this.#fingerprints.describeService().catch(() => 'the store does not answer')
    if (this.#seenService === seen) return
    this.#seenService = seen
    this.#shared = newShared()
    this.streams.signal('service', spreadMs)
  }
}

const newShared = () => new Remembered<Html | null>({ keepMs: () => shareMs, max: sharedMax })

/** Works again and again, each time after a pause, until the returned function is called. */
function repeat(pauseMs: number, work: () => Promise<void>): () => void {
  let isStopped = false
  let timer = setTimeout(run, pauseMs)
  async function run(): Promise<void> {
    await work()
    if (!isStopped) timer = setTimeout(run, pauseMs)
  }
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}

function listTopics(event: PosternEvent): readonly string[] {
  switch (event.kind) {
    case 'attempt_recorded':
      return [`email:${event.emailId}`, 'inbox']
    case 'emails_ended':
      return event.ended.map(({ emailId }) => `email:${emailId}`)
    case 'webhook_tried':
      return [`webhooks:${event.appId}`]
    default:
      return []
  }
}
