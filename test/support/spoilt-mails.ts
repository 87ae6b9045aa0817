/**
 * Authentication emails, spoilt by somebody who can make a program send them to others, or has stolen its
 * secret.
 */
import { type AuthMail, authMails, compose } from './auth-mails.ts'
import { pick, type Random, randomFrom } from './generator.ts'

const foreign = [
  'https://evil.test/reset?token=x',
  'https://acme.test.evil.test/accounts/reset/MQ/abc-def/',
  'https://app.acme.test@evil.test/accounts/reset/MQ/abc-def/',
  'https://evil.test\\@app.acme.test/accounts/reset/MQ/abc-def/',
  'https://app.acme.test%00.evil.test/u/password-reset/abcdef',
  'https://аpp.acme.test/accounts/reset/MQ/abc-def/',
  'http://app.acme.test/accounts/reset/MQ/abc-def/',
  'https://evil.test/https://app.acme.test/accounts/reset/MQ/abc-def/',
  'javascript://app.acme.test/accounts/reset/MQ/abc-def/%0aalert(1)',
  'https://cms.acme.test:8443/admin/reset-password?token=x',
  'HTTPS://EVIL.TEST/wp-login.php?action=rp&key=x',
]
const places = [
  (link: string) => `<a href="${link}">here</a>`,
  (link: string) => `<a href='${link}'>here</a>`,
  (link: string) => `<img src=${link}>`,
  (link: string) => `<!-- ${link} -->`,
  (link: string) => `<style>a { background: url(${link}) }</style>`,
  (link: string) => `<base href="${link}">`,
  (link: string) => `<form action="${link}"><input></form>`,
  (link: string) => link,
  (link: string) => [...link].map((letter) => `&#${letter.codePointAt(0)};`).join(''),
  (link: string) => `<a href="//${link.replace(/^\w+:\/\//, '')}">here</a>`,
]

const at = (random: Random, length: number) => Math.floor(random() * length)

type Spoil = (mail: AuthMail, random: Random) => AuthMail | Promise<Buffer>

const bytesOf =
  (change: (bytes: Buffer, random: Random) => Buffer): Spoil =>
  async (mail, random) =>
    change(await compose(mail, { textEncoding: pick(random, ['base64', 'quoted-printable'] as const) }), random)

const headed = (header: string, body: Buffer): Buffer => Buffer.concat([Buffer.from(`${header}\r\n\r\n`), body])

const spoils: readonly Spoil[] = [
  // Another link beside it, or in its place.
  (mail, random) => ({ ...mail, html: `${mail.html ?? ''}${pick(random, places)(pick(random, foreign))}` }),
  (mail, random) => ({ ...mail, text: `${mail.text ?? ''}\n${pick(random, foreign)}\n` }),
  (mail, random) => ({ ...mail, link: pick(random, foreign) }),
  (mail, random) => ({
    ...mail,
    link: mail.link.replace(/\/\/[^/]+/, `//${new URL(pick(random, authMails).link).host}.evil.test`),
  }),
  (mail) => ({ ...mail, text: `${mail.text ?? ''}\n${mail.link}x\n` }),
  (mail, random) => ({ ...mail, text: `LINK\n${pick(random, authMails).link}` }),
  // A broken link.
  (mail, random) => {
    const cut = at(random, mail.link.length)
    return {
      ...mail,
      html: '',
      text: `${mail.link.slice(0, cut)}${pick(random, ['\n', ' ', '=\n', '\u200b', '\u202e'])}${mail.link.slice(cut)}`,
    }
  },
  (mail, random) => {
    const cut = at(random, mail.link.length)
    return {
      ...mail,
      link: `${mail.link.slice(0, cut)}${String.fromCodePoint(at(random, 0xd7ff))}${mail.link.slice(cut)}`,
    }
  },
  // A broken message.
  bytesOf((bytes, random) => bytes.subarray(0, at(random, bytes.length))),
  bytesOf((bytes, random) => {
    const changed = Buffer.from(bytes)
    for (let n = 0; n < 20; n++) changed[at(random, changed.length)] = at(random, 256)
    return changed
  }),
  bytesOf((bytes, random) =>
    Buffer.from(
      bytes
        .toString('latin1')
        .replace(/charset=[\w-]+/g, `charset=${pick(random, ['utf-16', 'utf-7', 'iso-2022-jp', 'x-none', 'utf-32'])}`),
      'latin1',
    ),
  ),
  bytesOf((bytes, random) =>
    Buffer.from(
      bytes
        .toString('latin1')
        .replace(/Encoding: [\w-]+/g, `Encoding: ${pick(random, ['base64', '8bit', 'quoted-printable', 'x-uue'])}`),
      'latin1',
    ),
  ),
  // Nesting, and bombs.
  bytesOf((bytes) => headed('Content-Type: message/rfc822', bytes)),
  bytesOf((bytes, random) => {
    let nested = bytes
    for (let n = at(random, 40); n > 0; n--)
      nested = headed(
        `Content-Type: multipart/mixed; boundary=b${n}`,
        Buffer.concat([Buffer.from(`--b${n}\r\n`), nested, Buffer.from(`\r\n--b${n}--\r\n`)]),
      )
    return nested
  }),
  bytesOf((bytes, random) => Buffer.concat([Buffer.from('X: y\r\n'.repeat(at(random, 20_000))), bytes])),
  bytesOf((bytes, random) =>
    Buffer.concat([Buffer.from(`Subject: ${'=?utf-8?Q?=41?= '.repeat(at(random, 5000))}\r\n`), bytes]),
  ),
  bytesOf((bytes, random) =>
    Buffer.concat([bytes, Buffer.alloc(at(random, 200_000), pick(random, ['\n', '<', '&#', '://', 'a://b ']))]),
  ),
]

/** `count` of them, the same for a seed, with each way to spoil them in turn. */
export async function* spoilMails(count: number, seed: number): AsyncGenerator<{ system: string; bytes: Buffer }> {
  const random = randomFrom(seed)
  for (let n = 0; n < count; n++) {
    const mail = pick(random, authMails)
    const spoilt = await spoils[n % spoils.length]?.(mail, random)
    if (spoilt === undefined) return
    yield { system: mail.system, bytes: Buffer.isBuffer(spoilt) ? spoilt : await compose(spoilt) }
  }
}
