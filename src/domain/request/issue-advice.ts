/** The remedy for each fault of a request. The documents have the same tables: `npm run tables`. */

export type IssueAdvice = {
  readonly codes: readonly string[]
  /** The fields in which it occurs. Without them, the advice is the same in any field. */
  readonly fields?: readonly string[]
  /** Markdown. */
  readonly advice: string
}

const names = ['organisationName', 'inviterName']
const url = ['url']

/** By the code of the refusal. */
export const issueAdvice = {
  invalid_body: [
    { codes: ['content_type'], fields: ['body'], advice: 'send `Content-Type: application/json`' },
    { codes: ['content_encoding', 'body_too_large'], fields: ['body'], advice: 'send at most 16 KiB, uncompressed' },
    {
      codes: ['not_utf8', 'not_json', 'not_an_object', 'nested_too_deep'],
      fields: ['body'],
      advice: 'send one JSON object in UTF-8, nested 8 levels deep at most',
    },
    { codes: ['required'], advice: 'add the field' },
    { codes: ['not_a_string'], advice: 'send a JSON string, not a number, an array or an object' },
    { codes: ['misnamed_field'], advice: 'use the name that the message gives' },
    { codes: ['too_long'], advice: 'shorten it to the length in the message' },
    {
      codes: ['not_a_test_recipient'],
      fields: ['to'],
      advice: 'a test key sends only to an outcome at postern.test, such as `delivered@postern.test`',
    },
    {
      codes: ['not_an_address', 'invalid_local_part', 'invalid_domain'],
      fields: ['to'],
      advice: 'send one address such as `ada@example.com`',
    },
    { codes: ['forbidden_character'], fields: ['to'], advice: 'leave out the name, white space, brackets and commas' },
    { codes: ['unknown_type'], fields: ['type'], advice: 'use one of the four types' },
    {
      codes: ['not_a_timestamp', 'date_without_time'],
      fields: ['expiresAt'],
      advice: 'send an ISO 8601 date with a time: `2026-11-20T17:05:00Z`',
    },
    { codes: ['time_without_zone'], fields: ['expiresAt'], advice: 'end it with `Z` or an offset such as `+01:00`' },
    { codes: ['no_such_moment'], fields: ['expiresAt'], advice: 'check month, day, hour and minute' },
    {
      codes: ['in_the_past'],
      fields: ['expiresAt'],
      advice: 'the link has expired, or a clock is wrong: the answer to the app has both times',
    },
    {
      codes: ['alias_conflict'],
      fields: names,
      advice: 'send each name once: `organisationName`, not also `org_name`',
    },
    {
      codes: ['forbidden_character', 'lone_surrogate'],
      fields: names,
      advice: 'send valid Unicode without control characters, `<`, `>` and `://`',
    },
    { codes: ['malformed_code'], fields: ['code'], advice: 'see the [allowed forms](codes.md)' },
    { codes: ['code_not_for_invitations'], fields: ['code'], advice: 'leave the code out' },
    {
      codes: ['malformed_idempotency_key'],
      fields: ['Idempotency-Key'],
      advice: 'send 1 to 255 visible ASCII characters',
    },
    { codes: ['idempotency_key_reused'], fields: ['Idempotency-Key'], advice: 'use a new key for each email' },
  ],
  invalid_url: [
    { codes: ['query_missing', 'token_empty'], fields: url, advice: 'put the token in the query: `?token=…`' },
    { codes: ['query_not_exactly_token'], fields: url, advice: '[remove the other parameters](api.md#links)' },
    {
      codes: ['token_undecodable', 'token_with_controls'],
      fields: url,
      advice: 'percent-encode the token as UTF-8, without control characters',
    },
    { codes: ['not_absolute'], fields: url, advice: 'begin the link with its scheme, such as `https://`' },
    {
      codes: ['scheme_not_allowed'],
      fields: url,
      advice: "use https, http to localhost, or one of the app's schemes (`--app-scheme`)",
    },
    { codes: ['userinfo'], fields: url, advice: 'remove the user name and password before the host' },
    {
      codes: ['malformed_host'],
      fields: url,
      advice: 'write the host plainly: no percent signs, unusual number formats or trailing dot',
    },
    {
      codes: ['forbidden_character'],
      fields: url,
      advice: 'percent-encode spaces, quotes, backslashes, `<`, `>` and non-ASCII characters',
    },
    { codes: ['too_long'], fields: url, advice: 'shorten it to at most 8,192 characters' },
  ],
  invalid_hosted_link_config: [
    {
      codes: ['base_url_missing', 'base_url_insecure'],
      advice: 'set `POSTERN_LINKS_BASE_URL` to an https URL',
    },
    {
      codes: ['destination_invalid'],
      advice: 'correct `--link-destination`: the message says what is wrong',
    },
    {
      codes: ['original_needs_hosted_link'],
      advice:
        'for a link from an [auth server](auth-hooks.md): set `POSTERN_LINKS_BASE_URL`, and a `--hosted-links` mode other than `off`',
    },
  ],
} as const satisfies Readonly<Record<string, readonly IssueAdvice[]>>

const all: readonly IssueAdvice[] = Object.values(issueAdvice).flat()

/** In plain text. @param issue a field and a code, such as `to forbidden_character`; null without advice */
export function adviseOnIssue(issue: string): string | null {
  const [field = '', code = ''] = issue.split(' ')
  const found = all.find(({ codes, fields }) => codes.includes(code) && (fields?.includes(field) ?? true))
  return found === undefined ? null : found.advice.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').replaceAll('`', '')
}
