/** Configuration sets of Amazon SES. Each may have a time after which SES gives an email up. */

/** Shortest first. */
export type ConfigurationSets = readonly { readonly name: string; readonly seconds: number }[]

/** The seconds that SES allows; it tries for the most unless a set says otherwise. */
const [secondsMin, secondsMax] = [300, 50_400]

const form = `set is a configuration set, or several with their MaxDeliverySeconds (${secondsMin} to ${secondsMax}), such as five:300;hour:3600`

/** @param text `NAME`, or `NAME:SECONDS` with semicolons between them; null for no set */
export function readSets(text: string | null, fault: (text: string) => void): ConfigurationSets {
  if (text === null) return []
  const entries = text.split(';').map((entry) => /^([\w-]{1,64})(?::(\d{1,5}))?$/.exec(entry))
  const sets = entries.flatMap((match) =>
    match === null ? [] : { name: match[1] ?? '', seconds: Number(match[2] ?? secondsMax) },
  )
  const isRight =
    sets.length === entries.length &&
    sets.every(({ seconds }) => seconds >= secondsMin && seconds <= secondsMax) &&
    (entries.length === 1 || entries.every((match) => match?.[2] !== undefined)) &&
    new Set(sets.map(({ seconds }) => seconds)).size === sets.length
  if (!isRight) fault(form)
  return sets.toSorted((a, b) => a.seconds - b.seconds)
}

/** The set with the longest time that does not exceed that of the link, else that with the shortest. */
export const chooseSet = (sets: ConfigurationSets, lifeLeftMs: number): string | null =>
  (sets.findLast(({ seconds }) => seconds * 1000 <= lifeLeftMs) ?? sets[0])?.name ?? null
