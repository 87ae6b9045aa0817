/**
 * The cause of a failed delivery, from what a server said in the session or a report quotes. Enhanced codes
 * (RFC 3463 §3, and the IANA registry) name it; words do where there is no code, or one that says nothing.
 */

/**
 * `relay_suppressed`: the relay has a list of recipients that it sends nothing to. `expired_at_relay`: its
 * own time was over or that which Postern gave it, or the next server did not promise to keep it (RFC 2852).
 */
export const failureCauses = [
  'no_mailbox',
  'mailbox_full',
  'policy',
  'unreachable',
  'relay_suppressed',
  'expired_at_relay',
  'unknown',
] as const
export type FailureCause = (typeof failureCauses)[number]

/** The words of a server, and the codes in them; null where it gave none. */
export type Said = { readonly code: number | null; readonly enhanced: string | null; readonly text: string }

/** Words are looked for in so much of a text. */
const textMax = 1000

/** "Delivery time expired". */
const tooLate = /^[45]\.4\.7$/

type Sign = { readonly cause: FailureCause; readonly codes: RegExp; readonly words: RegExp }

/** A text that matches one of them. */
export const either = (...patterns: readonly RegExp[]): RegExp =>
  new RegExp(patterns.map(({ source }) => source).join('|'))

/** A mailbox is missing, in words that nobody says of the account that sends. */
export const missingMailbox =
  /\buser unknown\b|\bunknown user\b|\bno such (?:user|mailbox|person)\b|\bnot a valid recipient|\binvalid recipient|\baccount or domain may not exist|\bvalidrcptto\b|\baccount (?:that )?you tried to reach/

/**
 * Words decide where there is no code, or a vague one. Those of the first three also correct a code for
 * `no_mailbox`: GoDaddy has 5.1.1 for "too many recipients this hour", Facebook for "recipient preferences",
 * Gmail 5.2.1 for mail that comes too fast.
 */
const signs: readonly Sign[] = [
  {
    cause: 'mailbox_full',
    codes: /^[45]\.2\.2$/,
    words:
      /mail ?box (?:is )?full|no room in mailbox|postfach voll|bo[iî]te pleine|casella piena|buz[oó]n lleno|caixa (?:postal )?cheia|переполнен|已满|(?:account|inbox) is full|mailbox (?:has )?exceed|メールボックスが(?:一杯|いっぱい)|exceed(?:s|ed)? (?:its |the |allowed )?(?:quota|size|storage)|over ?quota|quota exceeded|out of storage|storage limit|insufficient storage/,
  },
  {
    cause: 'policy',
    codes: /^[45]\.(?:7\.(?!13$|17$|18$)|5\.3$)/,
    words:
      /\bspam|\bspf\b|\bdkim\b|\bdmarc\b|\bptr\b|reverse dns|dnsbl|\brbl\b|block ?list|black ?list|blocked (?:using|ip)|reputation|polic(?:y|ies)|too many|frequency limit|rate limit|at a rate|preferences|virus|content rejected|sender rejected|relay(?:ing)? (?:access )?denied/,
  },
  {
    cause: 'expired_at_relay',
    codes: tooLate,
    words: /(?:message|queue|delivery|delivery time|time) (?:has |is )?(?:expired|too old)|retry timeout exceeded/,
  },
  {
    cause: 'unreachable',
    codes: /^[45]\.4\./,
    words:
      /name ?server|(?:host|domain) (?:name )?(?:unknown|not found|not reachable|does not exist)|unknown host|no such domain|timed out|connection (?:refused|reset)|(?:unable|requests) to connect/,
  },
  {
    cause: 'no_mailbox',
    codes: /^[45]\.(?:1\.(?:1|2|3|6|10|351)|2\.1|7\.(?:13|17|18))$/,
    words: either(
      missingMailbox,
      /(?:user|recipient|mailbox|account|address) (?:is )?(?:unknown|not found|unavailable)|(?:user|recipient|mailbox) (?:account )?(?:is |has (?:been )?)?(?:disabled|inactive|deactivated|closed|expired|not local)|mailbox (?:is )?(?:suspended|locked)/,
      /(?:unknown|invalid|no such|non-?existent) (?:local |e-?mail )?(?:user|recipient|mailbox|account|address|person)|unknown local.?part|(?:user|account) not (?:known|exist)|does(?: not|n['’]t) (?:exist|have an? )|no mailbox here|no longer (?:on server|exists|valid|in use)|not listed in|not a valid mailbox|bad destination mailbox|no user by that name/,
      /utilisateur inconnu|compte inexistant|(?:benutzer|empf[aä]nger) unbekannt|postfach existiert|utente sconosciuto|usuario desconocido|usu[aá]rio desconhecido|onbekende gebruiker|nie istnieje|не существует|不存在|宛先不明|존재하지/,
    ),
  },
]

/** Words of mail services that give no code, or that of what happened to an earlier email. */
const ownList = /marked as inactive|suppression list|suppressed (?:sending|due) to/

/** No code, or one such as 5.0.0, of which only the first digits mean something. */
const isVague = (code: string | null): boolean => code === null || code.endsWith('.0')

/**
 * @param status the Status field of a report. A code in the server's words counts more, unless it is vague:
 * many relays write 5.0.0 above a quoted 5.1.1. A temporary code below "delivery time expired" is that of
 * the last attempt.
 */
export function causeOf({ code, enhanced, text }: Said, status: string | null = null): FailureCause {
  const codes = [enhanced, status].filter((each) => each !== null)
  const words = wordsOf(text)
  if (ownList.test(words)) return 'relay_suppressed'
  if (code === null && codes.length === 0) return 'unknown'
  const best = codes.find((each) => !isVague(each)) ?? codes[0] ?? null
  // The reply of a large mailbox provider for users that it does not know.
  if (best === '5.4.1' && words.includes('access denied')) return 'no_mailbox'
  if (tooLate.test(status ?? '') && !enhanced?.startsWith('5')) return 'expired_at_relay'
  const byCode = signs.find((sign) => sign.codes.test(best ?? ''))?.cause ?? 'unknown'
  const needsWords = byCode === 'no_mailbox' || (byCode === 'unknown' && isVague(best))
  const byWords = needsWords ? signs.find((sign) => sign.words.test(words))?.cause : undefined
  return byWords ?? byCode
}

/** The cause that words name, where there is no code. */
export function causeOfWords(text: string): FailureCause {
  const words = wordsOf(text)
  if (ownList.test(words)) return 'relay_suppressed'
  return signs.find((sign) => sign.words.test(words))?.cause ?? 'unknown'
}

const wordsOf = (text: string): string => withoutAddresses(text.slice(0, textMax).toLowerCase())

/** A name in an address means nothing: `<spam@example.com>: user unknown`. */
export const withoutAddresses = (text: string): string =>
  text
    .split(' ')
    .filter((word) => !word.includes('@'))
    .join(' ')
