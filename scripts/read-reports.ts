/**
 * `node scripts/read-reports.ts FOLDER [LABELS.tsv]`: reads every `.eml` of a folder as the bounce listener
 * does, counts what it finds, and then reads 20,000 mutated ones, with their time and memory. LABELS.tsv has
 * lines of file, recipient, action, status and reason, as Sisimai judges `sisimai/set-of-emails`.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Reference } from '../src/domain/delivery/reference.ts'
import { suppressionBy } from '../src/domain/delivery/suppression.ts'
import { readReport } from '../src/reports/read-report.ts'
import { type Finding, judgeReport } from '../src/reports/record-report.ts'

const [folder, labelsFile] = process.argv.slice(2)
if (folder === undefined) {
  console.error('usage: node scripts/read-reports.ts FOLDER [LABELS.tsv]')
  process.exit(2)
}
const envelope = `b+${'em_01m85rt6yr0000fykq7my1841e.0123456789' as Reference}@acme.test`
const samples = readdirSync(folder)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => ({ name, bytes: readFileSync(join(folder, name)) }))

/** The reason of a file's first recipient; `-` where the other program read nothing. */
const reasons = new Map<string, string>()
for (const line of labelsFile === undefined ? [] : readFileSync(labelsFile, 'utf8').split('\n').slice(1)) {
  const [file = '', , , , reason = '-'] = line.split('\t')
  if (!reasons.has(file)) reasons.set(file, reason)
}
/** The causes that both programs have. */
const causes: Readonly<Record<string, string>> = {
  userunknown: 'no_mailbox',
  hostunknown: 'unreachable',
  mailboxfull: 'mailbox_full',
  expired: 'unreachable',
}

const find = async (bytes: Buffer): Promise<Finding> => judgeReport(await readReport(bytes, envelope), () => true)
const isHeldOut = (name: string): boolean => (createHash('sha256').update(name).digest()[0] ?? 0) % 2 === 1

for (const heldOut of [false, true]) {
  const counts = { files: 0, labelled: 0, recognised: 0, known: 0, same: 0, suppressed: 0 }
  for (const { name, bytes } of samples.filter((sample) => isHeldOut(sample.name) === heldOut)) {
    const finding = await find(bytes)
    const reason = reasons.get(name) ?? '-'
    counts.files += 1
    if (reason !== '-') counts.labelled += 1
    if (reason !== '-' && finding.kind !== 'other') counts.recognised += 1
    if (finding.kind !== 'other' && suppressionBy(finding) === 'no_mailbox') counts.suppressed += 1
    const cause = causes[reason]
    if (cause === undefined) continue
    counts.known += 1
    const isSame =
      finding.kind === 'bounced' ? finding.cause === cause : finding.kind === 'delayed' && reason === 'expired'
    if (isSame) counts.same += 1
  }
  console.log(heldOut ? 'held-out half:' : 'development half:', counts)
}

let seed = 4711
const random = (below: number): number => {
  seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff
  return seed % below
}
function mutate(bytes: Buffer): Buffer {
  const [from, length] = [random(bytes.length + 1), random(400)]
  const [before, rest] = [bytes.subarray(0, from), bytes.subarray(from)]
  switch (random(4)) {
    case 0:
      return Buffer.concat([before, rest.subarray(length)])
    case 1:
      return Buffer.concat([before, rest.subarray(0, length), rest])
    case 2:
      return Buffer.concat([before, ...Array<Buffer>(random(3000)).fill(rest.subarray(0, 40)), rest])
    default: {
      const other = samples[random(samples.length)]?.bytes ?? bytes
      return Buffer.concat([before, other.subarray(random(other.length))])
    }
  }
}
const [count, max] = [20_000, 512 * 1024]
let [total, worst, memory] = [0, 0, 0]
for (let n = 0; n < count; n++) {
  let bytes: Buffer = samples[random(samples.length)]?.bytes ?? Buffer.alloc(0)
  for (let changes = 1 + random(5); changes > 0; changes--) bytes = mutate(bytes).subarray(0, max)
  const begunMs = performance.now()
  await find(bytes)
  const tookMs = performance.now() - begunMs
  total += tookMs
  worst = Math.max(worst, tookMs)
  memory = Math.max(memory, process.memoryUsage.rss())
}
console.log(`${count} mutated reports:`, {
  meanMs: Number((total / count).toFixed(2)),
  worstMs: Number(worst.toFixed(1)),
  memoryMb: Math.round(memory / 1e6),
})
