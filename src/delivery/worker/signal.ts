/** Wakes a waiting loop. A notification that comes while nobody waits is kept for the next wait. */
export class Signal {
  #notified = false
  #wake: (() => void) | null = null

  notify(): void {
    this.#notified = true
    this.#wake?.()
  }

  /** Resolves when notified, or after `ms`. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#notified = false
        this.#wake = null
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#wake = done
      if (this.#notified) done()
    })
  }
}
