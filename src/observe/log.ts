/**
 * The log: one JSON line for each event that an operator may look for. Requests and deliveries are
 * bounded: of one kind, 20 lines a second are written, and the next line says how many were left out.
 */
import { type Logger, pino } from 'pino'
import type { PosternEvent } from './events.ts'
import { LineLimiter } from './line-limiter.ts'
import type { LineOutput } from './line-output.ts'
import { writeLines } from './log-lines.ts'

/** `base`: fields of every line. */
export const newLog = (
  level: string,
  base: Readonly<Record<string, string>> | null,
  output: Pick<LineOutput, 'write'>,
): Logger =>
  pino(
    {
      level,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    output,
  )

/** Returns a listener that logs events. `nowMs` is monotonic. */
export function logEvents(log: Logger, nowMs = () => performance.now()): (event: PosternEvent) => void {
  const limiter = new LineLimiter(nowMs)
  return (event) => {
    for (const { level, text, fields, kind } of writeLines(event)) {
      if (!log.isLevelEnabled(level)) continue
      const leftOut = kind === undefined ? 0 : limiter.take(kind)
      if (leftOut === null) continue
      const written = typeof fields === 'function' ? fields() : fields
      log[level](leftOut === 0 ? written : { ...written, leftOut }, text)
    }
  }
}
