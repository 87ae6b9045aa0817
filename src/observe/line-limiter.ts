/** Bounds the lines of the log: of one kind, so many are written in a second. */

export const linesPerSecond = 20

export class LineLimiter {
  readonly #nowMs: () => number
  readonly #windows = new Map<string, { startedAtMs: number; lines: number; leftOut: number }>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Null if the line is left out; otherwise how many were left out since the last one. */
  take(kind: string): number | null {
    const now = this.#nowMs()
    const window = this.#windows.get(kind)
    if (window === undefined || now - window.startedAtMs >= 1000) {
      this.#windows.set(kind, { startedAtMs: now, lines: 1, leftOut: 0 })
      return window?.leftOut ?? 0
    }
    if (window.lines < linesPerSecond) {
      window.lines += 1
      return 0
    }
    window.leftOut += 1
    return null
  }
}
