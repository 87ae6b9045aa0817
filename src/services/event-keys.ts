/** The secrets by which webhooks of mail services prove themselves, as an operator writes them. */
import type { BodyProof, Proof, ProvenCall } from './event-proof.ts'
import type { ServiceEvents } from './service.ts'
import { type EventService, eventServices } from './services.ts'

/** A key, and the name of the proof that it is for. */
export type EventKey = { readonly proof: string; readonly key: unknown }

const hasKeyFor = (keys: readonly EventKey[], proof: { readonly name: string }): boolean =>
  keys.some((key) => key.proof === proof.name)

/** The services whose calls these keys can prove. */
export const provenServices = (keys: readonly EventKey[]): EventService[] =>
  eventServices.filter(({ events }) => hasKeyFor(keys, events.proof))

/** Whether the headers and the raw body of a call prove that it comes from the service. */
export async function provesCall(
  { proof }: ServiceEvents,
  call: ProvenCall,
  keys: readonly EventKey[],
): Promise<boolean> {
  for (const { key, proof: name } of keys) if (name === proof.name && (await proof.proves(call, key))) return true
  return false
}

/** Whether the body proves itself, if there is a key for that. */
export function provesBody({ bodyProof }: ServiceEvents, body: unknown, keys: readonly EventKey[]): boolean {
  if (bodyProof === undefined || !hasKeyFor(keys, bodyProof)) return true
  return keys.some((key) => key.proof === bodyProof.name && bodyProof.proves(body, key.key))
}

/** By name, each once. */
const proofs: ReadonlyMap<string, Proof | BodyProof> = new Map(
  eventServices
    .flatMap(({ events: { bodyProof, proof } }) => (bodyProof === undefined ? [proof] : [proof, bodyProof]))
    .map((proof) => [proof.name, proof]),
)

/** Keys that are separated by spaces or line breaks. No fault repeats one. */
export function parseEventKeys(text: string): {
  readonly keys: readonly EventKey[]
  readonly faults: readonly string[]
} {
  const keys: EventKey[] = []
  const faults: string[] = []
  for (const [index, entry] of text.trim().split(/\s+/).entries()) {
    const [name = ''] = entry.split(':', 1)
    const proof = proofs.get(name)
    const key = proof?.readKey(entry.slice(name.length + 1)) ?? null
    const form = proof?.form ?? `of the form NAME:…, with a name of ${[...proofs.keys()].join(', ')}`
    if (key === null) faults.push(`key ${index + 1} must be ${form}`)
    else keys.push({ proof: name, key })
  }
  for (const { events, title } of eventServices)
    if (events.bodyProof !== undefined && hasKeyFor(keys, events.bodyProof) && !hasKeyFor(keys, events.proof))
      faults.push(
        `${events.bodyProof.name}: needs ${events.proof.name}: too, since the signature of ${title} does not cover the event`,
      )
  return { keys, faults }
}
