/** One bad call must not fail the others of its group: if one is at fault, each call is run alone. */
import type { Settled } from '../../shared/grouped-calls.ts'
import { CallAtFault } from '../engine/errors.ts'

export async function isolateFaults<Call>(
  calls: readonly Call[],
  run: (calls: readonly Call[]) => Promise<Settled[]>,
): Promise<Settled[]> {
  try {
    return await run(calls)
  } catch (error) {
    if (!(error instanceof CallAtFault) || calls.length === 1) throw error
    const settled: Settled[] = []
    for (const call of calls) settled.push(...(await run([call]).catch((fault: Error) => [{ error: fault }])))
    return settled
  }
}
