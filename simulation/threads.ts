/**
 * The threads of the SQLite store, as objects beside the service. A message takes a while, keeps its order,
 * and is a copy, as between real threads. A thread dies with its process.
 */
import { EventEmitter } from 'node:events'
import type { Port } from '../src/store/sqlite/threads/answer.ts'
import { serve as serveCheckpointer } from '../src/store/sqlite/threads/checkpointer.ts'
import { serve as serveReader } from '../src/store/sqlite/threads/reader.ts'
import { serve as serveWriter } from '../src/store/sqlite/threads/writer.ts'
import type { World } from './world.ts'

type Serve = (port: Port<never, unknown>, data: never) => void

const threads: Readonly<Record<string, Serve>> = {
  writer: serveWriter,
  reader: serveReader,
  checkpointer: serveCheckpointer,
}

const startMs = 20

/** @param latencyMs how long the next message takes */
export function newThreads(world: World, latencyMs: (thread: string) => number) {
  return class SimulatedWorker extends EventEmitter {
    readonly postMessage: (message: never) => void

    constructor(url: URL, { workerData }: { workerData: never }) {
      super()
      const name = /(\w+)\.[jt]s$/.exec(url.pathname)?.[1] ?? ''
      /** A copy arrives after a while, in order. An error in the thread ends it. */
      const newChannel = <Message>(receive: (message: Message) => void) => {
        let lastMs = world.nowMs + startMs
        return (message: Message) => {
          const copy = structuredClone(message)
          lastMs = Math.max(lastMs, world.nowMs + latencyMs(name))
          world.after(lastMs - world.nowMs, () => this.#run(() => receive(copy)))
        }
      }
      let receive = (_message: never): void => {}
      this.postMessage = newChannel((message: never) => receive(message))
      const port: Port<never, unknown> = {
        on: (_event, listener) => {
          receive = listener
        },
        postMessage: newChannel((message: unknown) => this.emit('message', message)),
        close: () => void world.after(latencyMs(name), () => this.emit('exit', 0)),
      }
      const data = structuredClone(workerData)
      world.after(startMs, () => this.#run(() => threads[name]?.(port, data)))
    }

    #run(step: () => void): void {
      try {
        step()
      } catch (error) {
        this.emit('error', error)
      }
    }
  }
}
