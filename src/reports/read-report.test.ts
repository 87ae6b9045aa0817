import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { EmailAddress } from '../domain/request/email-address.ts'
import { limitAddress } from '../domain/request/email-address.ts'
import { readReport } from './read-report.ts'
import { type Finding, judgeReport } from './record-report.ts'
import { readSaid } from './report-rows.ts'

const folder = new URL('../../test/corpus/reports/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(`${name}.eml`, folder), 'utf8')
const reference = 'em_01k9zc3v7mabcdefghjkmnpqrs.0123456789'
const isAda = (address: EmailAddress) => limitAddress(address) === 'ada@example.com'
const provesNoMailbox = (finding: Finding): boolean =>
  finding.kind === 'bounced' && finding.about === 'recipient' && finding.permanent && finding.cause === 'no_mailbox'
const judge = async (text: string): Promise<Finding> => judgeReport(await readReport(Buffer.from(text), null), isAda)

type Words = 'no_mailbox' | 'mailbox_full' | 'policy' | 'unreachable' | 'expired_at_relay' | 'unknown'
const bounced = (about: 'recipient' | 'other' | 'unknown', cause: Words, permanent: boolean, text: string) => ({
  kind: 'bounced',
  about,
  permanent,
  cause,
  text,
})

const gone = '550 5.1.1 <address>: Recipient address rejected: User unknown in virtual mailbox table; see <link>'
const findings: Readonly<Record<string, object>> = {
  postfix: bounced('recipient', 'no_mailbox', true, gone),
  exim: bounced('recipient', 'no_mailbox', true, '550 5.1.1 no such user'),
  opensmtpd: bounced('recipient', 'unknown', true, ''),
  sendmail: bounced('recipient', 'mailbox_full', true, '552 5.2.2 Over quota'),
  'status-with-comment': bounced('recipient', 'no_mailbox', true, '550 5.1.1 unknown or illegal alias: <address>'),
  'given-up': bounced('recipient', 'expired_at_relay', false, '550 4.4.7 QUEUE.Expired; message expired'),
  forward: bounced('other', 'no_mailbox', true, '550 5.1.1 No such user'),
  team: bounced('other', 'no_mailbox', true, '550 5.1.1 No such user'),
  'original-only': bounced('unknown', 'no_mailbox', true, '550 5.1.1 User unknown'),
  ses: bounced(
    'recipient',
    'mailbox_full',
    true,
    "5.1.0 - Unknown address error 550-'5.2.2 <address>: user over quota'",
  ),
  delayed: { kind: 'delayed', text: 'connect to mail.example.com[192.0.2.1]:25: Connection timed out' },
  relayed: { kind: 'other' },
  abuse: { kind: 'complained' },
  jmrp: { kind: 'complained' },
  'not-spam': { kind: 'not_spam' },
  'auth-failure': { kind: 'other' },
  qmail: bounced('unknown', 'no_mailbox', true, 'Sorry, no mailbox here by that name. (#5.1.1)'),
  'old-exim': bounced('unknown', 'mailbox_full', true, 'host mail.example.com [192.0.2.1]: 552 mailbox is full'),
  'old-exim-warning': {
    kind: 'delayed',
    text: 'host mail.example.com [192.0.2.1]: 451 4.7.1 Greylisted, please try again: failed',
  },
  'quoted-printable': bounced(
    'unknown',
    'no_mailbox',
    true,
    '-- 5.4.1 Recipient address rejected: Access denied. [QQ00.jpnprd01.prod.outlook.com]',
  ),
  'postmaster-auto-replied': bounced('unknown', 'no_mailbox', true, '550 <address>: No such user here'),
  vacation: { kind: 'other' },
  'vacation-null-sender': { kind: 'other' },
  answer: { kind: 'other' },
}

test('every sample is in the table of findings', async () => {
  const names = readdirSync(folder).map((name) => name.replace('.eml', ''))
  assert.deepEqual(names.toSorted(), Object.keys(findings).toSorted())
})

for (const [name, expected] of Object.entries(findings))
  test(`${name}: what it means is the same with LF, CR LF and trailing spaces; the reference is found`, async () => {
    const text = read(name)
    for (const spelling of [text, text.replaceAll('\n', '\r\n'), text.replace(/(?<=[^=\n])\n/g, ' \n')]) {
      const finding = await judge(spelling)
      const { reply, ...rest } = { reply: undefined, ...finding }
      assert.deepEqual(reply === undefined ? rest : { ...rest, text: reply.text.trim() }, expected)
      assert.deepEqual((await readReport(Buffer.from(spelling), null)).references, [reference])
    }
  })

test('only fields about the recipient itself prove that a mailbox does not exist', async () => {
  const proofs: string[] = []
  for (const name of Object.keys(findings)) if (provesNoMailbox(await judge(read(name)))) proofs.push(name)
  assert.deepEqual(proofs, ['postfix', 'exim', 'status-with-comment'])
  const temporary = read('postfix').replace('Status: 5.1.1', 'Status: 4.1.1').replace('550 5.1.1', '450 4.1.1')
  assert.equal(provesNoMailbox(await judge(temporary)), false)
})

test('a row has the fields of its block, in any order, and the codes of the reply that it quotes', async () => {
  const { rows, form } = await readReport(Buffer.from(read('forward')), null)
  assert.equal(form, 'fields')
  assert.deepEqual(rows, [
    {
      finalRecipient: 'ada.home@example.net',
      originalRecipient: 'ada@example.com',
      action: 'failed',
      status: '5.1.1',
      reply: { code: 550, enhanced: '5.1.1', text: '550 5.1.1 No such user' },
      cause: 'no_mailbox',
      permanent: true,
    },
  ])
  assert.equal((await readReport(Buffer.from(read('qmail')), null)).form, 'text')
})

test('a row about the recipient counts more than the rows of others', async () => {
  const other = 'Final-Recipient: rfc822; bob@example.net\nAction: failed\nStatus: 5.2.2\n\n'
  const text = read('postfix').replace('Final-Recipient', `${other}Final-Recipient`)
  assert.equal((await readReport(Buffer.from(text), null)).rows.length, 2)
  assert.equal(provesNoMailbox(await judge(text)), true)
})

test('of many rows fifty are read', async () => {
  const row = 'Final-Recipient: rfc822; bob@example.net\nAction: failed\n\n'
  assert.equal((await readReport(Buffer.from(`\n${row.repeat(60)}`), null)).rows.length, 50)
})

test('without Action the Status decides; SendGrid’s "expired" is a failure', async () => {
  const withFields = async (lines: string) =>
    (await judge(read('postfix').replace('Action: failed\nStatus: 5.1.1\n', lines))).kind
  assert.equal(await withFields('Status: 5.1.1\n'), 'bounced')
  assert.equal(await withFields('Status: 4.1.1\n'), 'delayed')
  assert.equal(await withFields('Action: constructor\nStatus: 5.1.1\n'), 'bounced')
  const expired = read('postfix').replace('Action: failed\nStatus: 5.1.1\n', 'Action: expired\nStatus: \n')
  const { kind, form } = await readReport(Buffer.from(expired), null)
  assert.deepEqual([kind, form], ['bounced', 'fields'])
  const neither = read('postfix').replace('Action: failed\nStatus: 5.1.1\n', 'Status: RO\n')
  assert.equal((await readReport(Buffer.from(neither), null)).form, 'text')
})

test('without a quoted code the Status names the cause', async () => {
  const text = read('opensmtpd').replace('Status: 5.0.0', 'Status: 5.2.2')
  assert.deepEqual(withCause(await judge(text)), ['mailbox_full', true])
  assert.deepEqual(withCause(await judge(text.replace('5.2.2', '4.2.2'))), ['mailbox_full', false])
})

const withCause = (finding: Finding) => (finding.kind === 'bounced' ? [finding.cause, finding.permanent] : [])

test('without a diagnosis the reply comes from the text, and proves nothing about a mailbox', async () => {
  const said = 'gone@example.org: 550 5.1.1 <gone@example.org>: User unknown'
  const text = read('opensmtpd').replace('recipients.\n', `recipients.\n\n${said}\n`)
  const finding = await judge(text)
  assert.deepEqual(withCause(finding), ['no_mailbox', true])
  assert.ok(finding.kind === 'bounced')
  assert.deepEqual([finding.about, finding.reply.code], ['unknown', 550])
  assert.doesNotMatch(finding.reply.text, /gone@/)
  // The fields are no prose. A diagnosis, or a Status that says something, wins.
  assert.deepEqual(withCause(await judge(read('opensmtpd').replace('mx.acme.test', 'mx 550 5.1.1 acme'))), [
    'unknown',
    true,
  ])
  assert.deepEqual(withCause(await judge(text.replace('Status: 5.0.0', 'Status: 5.2.2'))), ['mailbox_full', true])
  const diagnosed = text.replace('Status: 5.0.0', 'Status: 5.0.0\nDiagnostic-Code: smtp; 552 5.2.2 full')
  assert.deepEqual(withCause(await judge(diagnosed)), ['mailbox_full', true])
})

test('types of complaints in any case; the field of Outlook.com counts from its sender alone', async () => {
  assert.equal((await judge(read('abuse').replace('abuse\n', 'Fraud\n'))).kind, 'complained')
  assert.equal((await judge(read('jmrp').replace('staff@hotmail.com', 'ada@example.com'))).kind, 'other')
})

const prose = async (header: string, body: string) => (await judge(`${header}\n\n${body}`)).kind

test('prose is a report if a mail system sent it, and it names a failure', async () => {
  assert.equal(await prose('From: postmaster@example.com', 'Nothing is wrong.'), 'other')
  assert.equal(await prose('From: postmaster@example.com', 'The delivery failed.'), 'bounced')
  assert.equal(await prose('From: ada@example.com', 'The delivery failed.'), 'other')
  assert.equal(await prose('Return-Path: <>\nFrom: ada@example.com', 'The delivery failed.'), 'bounced')
  assert.equal(await prose('Return-Path:\nFrom: ada@example.com', 'The delivery failed.'), 'bounced')
  const named = 'From: x@example.com\nAuto-Submitted: auto-replied\nX-Failed-Recipients: ada@example.com'
  assert.equal(await prose(named, 'As a note.'), 'bounced')
})

test('a warning in prose is a delay, whether its subject or its text says so', async () => {
  const subject = 'From: mailer-daemon@example.com\nSubject: Warning: message 1'
  assert.equal(await prose(subject, 'It failed so far.'), 'delayed')
  assert.equal(await prose('From: mailer-daemon@example.com', 'It failed.\nThis is a warning message only.'), 'delayed')
})

test('words of the returned email are not quoted', async () => {
  const email = 'Message-ID: <a@acme.test>\n\nYour code, not unknown to us: 551 223'
  const finding = await judge(`From: mailer-daemon@example.com\n\nYour email failed.\n\n${email}`)
  assert.equal('reply' in finding && finding.reply.text, 'Your email failed.')
})

test('a reply in prose ends at an empty line', async () => {
  const finding = await judge('From: mailer-daemon@example.com\n\nIt answered:\n550 unknown\n\nThe email:')
  assert.equal('reply' in finding && finding.reply.text, '550 unknown')
})

test('references come from the envelope and from the text, also where quoted-printable breaks them', async () => {
  const envelope = `bounces+${reference.toUpperCase()}@acme.test`
  assert.deepEqual((await readReport(Buffer.from('Subject: x\n\ny'), envelope)).references, [reference])
  assert.deepEqual((await readReport(Buffer.from('Subject: x\n\ny'), null)).references, [])
  const broken = `x\r\n\r\n${reference.slice(0, 20)}=\r\n${reference.slice(20)}`
  assert.deepEqual((await readReport(Buffer.from(broken), null)).references, [reference])
})

test('the codes of a reply are not taken from other numbers', async () => {
  const codes = (text: string) => {
    const { code, enhanced } = readSaid(text)
    return [code, enhanced]
  }
  assert.deepEqual(codes('host r2.example.org[198.51.100.24] said: 550 5.1.1 no'), [550, '5.1.1'])
  assert.deepEqual(codes('550-5.7.26 blocked. 550-5.7.26 5.1.1'), [550, '5.7.26'])
  assert.deepEqual(codes("5.1.0 - Unknown address error 550-'5.2.2 full'"), [550, '5.2.2'])
  assert.deepEqual(codes('552 over quota (#5.1.1)'), [552, '5.1.1'])
  assert.deepEqual(codes('421 4.7.0 [TSS04] complaints - 4.16.55.1'), [421, '4.7.0'])
  assert.deepEqual(codes('unable to deliver in 480 minutes, from 5.10.20.30'), [null, null])
  assert.deepEqual(codes('id=550-22, Postfix/5.4.3, #550'), [null, null])
})

test('a reply names neither the link nor the recipient nor the code of the email, which is not kept', async () => {
  const sealed = 'AbC9dEf0GhI1jKl2MnO3pQr4StU5vWx6'
  const report = async (diagnostic: string, returned = 'To: "Ada" <ada.lovelace@example.com>') =>
    (
      await readReport(
        Buffer.from(
          `From: MAILER-DAEMON\n\n\nFinal-Recipient: rfc822; ada.lovelace@example.com\nAction: failed\nStatus: 5.7.1\nDiagnostic-Code: smtp; ${diagnostic}\n\n${returned}\n`,
        ),
        null,
      )
    ).rows[0]?.reply.text
  assert.equal(
    await report(`550 5.7.1 spam for ada.lovelace: links.acme.test/acme/${sealed} code 246813, mailbox full`),
    '550 5.7.1 spam for <address>: <link> code <code>, mailbox full',
  )
  assert.equal(
    await report(`550 5.7.1 links.acme.test/acme/${sealed.slice(0, 20)}\n ${sealed.slice(20)}`),
    '550 5.7.1 <link> <token>',
  )
  assert.equal(await report('550 5.7.1 grace unknown', 'To: grace@example.net'), '550 5.7.1 <address> unknown')
  const prose = `From: MAILER-DAEMON\nReturn-Path: <>\n\n<ada.lovelace@example.com>:\nRemote host said: 550 ada.lovelace, ${sealed} 246-813 failed\n`
  assert.equal(
    (await readReport(Buffer.from(prose), null)).rows[0]?.reply.text,
    'Remote host said: 550 <address>, <token> <number> failed',
  )
})

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const fromDaemon = 'From: MAILER-DAEMON@mx.test\nSubject: Undelivered Mail Returned to Sender'
const unknownUser = `Your email ${reference} could not be delivered. The server said: 550 5.1.1 User unknown`
const part = (type: string, encoding: string, text: string) =>
  `--b\nContent-Type: ${type}\nContent-Transfer-Encoding: ${encoding}\n\n${text}\n`
const multipart = (type: string, ...parts: string[]) =>
  `${fromDaemon}\nContent-Type: ${type}; boundary=b\n\n${parts.join('')}--b--\n`

test('the text of a report is read in every encoding and charset, and wherever it is in the mail', async () => {
  const [html, plain] = [`<style>p { color: red }</style><p>${unknownUser}</p>`, 'text/plain; charset=utf-8']
  const mails: Readonly<Record<string, string>> = {
    base64: `${fromDaemon}\nContent-Type: ${plain}\nContent-Transfer-Encoding: BASE64\n\n${base64(unknownUser)}`,
    'a null sender': `Return-Path: <>\nSubject: x\nContent-Transfer-Encoding: base64\n\n${base64(unknownUser)}`,
    'quoted-printable': `${fromDaemon}\nContent-Transfer-Encoding: quoted-printable\n\n${unknownUser.replace('User', 'Us=\ner')}`,
    HTML: `${fromDaemon}\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\n${base64(html)}`,
    'a part': multipart('multipart/mixed', part(plain, 'base64', base64(unknownUser))),
    'a part in a part': multipart(
      'multipart/mixed',
      `--b\nContent-Type: multipart/alternative; boundary=c\n\n-${part(plain, 'base64', base64(unknownUser)).replace('--b', '-c')}--c--\n`,
    ),
    'a part before the returned email': multipart(
      'multipart/mixed',
      part(plain, 'base64', base64(unknownUser)),
      part('message/rfc822', '7bit', 'Subject: 552 5.2.2 full\n\n552 5.2.2 full'),
    ),
    UTF16: `${fromDaemon}\nContent-Type: text/plain; charset=utf-16le\nContent-Transfer-Encoding: base64\n\n${Buffer.from(unknownUser, 'utf16le').toString('base64')}`,
    'an encoded subject': `Return-Path: <>\nSubject: =?utf-8?B?${base64('Undelivered')}?=\n\nSorry, ${reference}: 550 5.1.1 User unknown`,
  }
  for (const [name, mail] of Object.entries(mails)) {
    const report = await readReport(Buffer.from(mail), null)
    const finding = judgeReport(report, isAda)
    assert.deepEqual(withCause(finding), ['no_mailbox', true], name)
    assert.ok('reply' in finding && /550 5\.1\.1 User unknown/.test(finding.reply.text), name)
    assert.deepEqual(report.references, [reference], name)
    assert.equal(provesNoMailbox(finding), false, name)
  }
})

test('the text of the returned email is not that of the report', async () => {
  const returned = part('message/rfc822', '7bit', 'Subject: Sign in\n\nYour code: 550 5.1.1 user unknown')
  const finding = await judge(multipart('multipart/mixed', part('text/plain', '7bit', 'It failed.'), returned))
  assert.deepEqual(finding.kind === 'bounced' && [finding.cause, finding.reply.text], ['unknown', 'It failed.'])
})

test('the fields of a report are read in every encoding, and count as fields', async () => {
  const fields =
    'Reporting-MTA: dns; mx.test\n\nFinal-Recipient: rfc822; ada@example.com\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 User unknown\n'
  for (const [encoding, text] of [
    ['base64', base64(fields)],
    ['quoted-printable', fields.replace('User unknown', 'User un=\nknown')],
    ['7bit', fields],
  ] as const) {
    const finding = await judge(
      multipart(
        'multipart/report',
        part('text/plain', '7bit', 'Sorry.'),
        part('message/delivery-status', encoding, text),
      ),
    )
    assert.equal(provesNoMailbox(finding), true, encoding)
    assert.equal('reply' in finding && finding.reply.text, '550 5.1.1 User unknown', encoding)
  }
})

test('a mail of hostile MIME is read as it came', async () => {
  const deep = Array.from({ length: 50 }, (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\n\n--b${n}\n`).join(
    '',
  )
  assert.equal(provesNoMailbox(await judge(`${deep}${read('postfix')}`)), true)
})

test('fields without a diagnosis get the reply of the text; IronPort has it in a field of its own', async () => {
  const bare = (status: string, more = '') =>
    multipart(
      'multipart/report',
      part(
        'text/plain',
        '7bit',
        'ada@example.com: 550 5.1.1 <ada@example.com>: Recipient address rejected: User unknown',
      ),
      part(
        'message/delivery-status',
        '7bit',
        `Final-Recipient: rfc822; ada@example.com\nAction: failed\nStatus: ${status}\n${more}`,
      ),
    )
  const said = await judge(bare('5.0.0'))
  assert.deepEqual(withCause(said), ['no_mailbox', true])
  assert.match('reply' in said ? said.reply.text : '', /550 5\.1\.1 .*User unknown/)
  assert.equal(provesNoMailbox(said), false, 'text proves nothing')
  const precise = await judge(bare('5.2.2'))
  assert.deepEqual(withCause(precise), ['mailbox_full', true], 'the status counts more')
  assert.match('reply' in precise ? precise.reply.text : '', /User unknown/)
  assert.equal(provesNoMailbox(await judge(bare('5.1.1'))), true, 'the status is a field')
  const ironPort = await judge(bare('5.0.0', 'X-Supplementary-Info: <192.0.2.32 #5.0.0 smtp; 550 "Unknown User">\n'))
  assert.deepEqual(withCause(ironPort), ['no_mailbox', true])
  const denied = 'X-Supplementary-Info: <192.0.2.32 #5.0.0 smtp; 550 5.4.1 Recipient address rejected: Access denied>\n'
  assert.deepEqual(withCause(await judge(bare('5.0.0', denied))), ['no_mailbox', true])
})

test('sender and subject prove a report, whatever its words', async () => {
  for (const [from, subject, body, kind] of [
    ['Postmaster@carrier.test', 'Mail System Error - Returned Mail', 'The user(s) account is disabled.', 'bounced'],
    [
      'MAILER-DAEMON@x.test',
      'Returned mail: Cannot send message for 4 days',
      '421 … Deferred: Connection timed out',
      'bounced',
    ],
    [
      'mailer-daemon@googlemail.com',
      'Delivery Status Notification (Delay)',
      'Delivery has been delayed and will be retried',
      'delayed',
    ],
    ['postmaster@x.test', 'Nicht zustellbar: Anmeldung', 'Das ging nicht.', 'bounced'],
    ['postmaster@x.test', 'Недоставленное сообщение', 'Увы.', 'bounced'],
    [
      'no-reply@carrier.test',
      'メールエラー通知',
      '送信先のメールボックスが一杯のため、送信できませんでした。',
      'bounced',
    ],
  ] as const)
    assert.equal(await prose(`From: ${from}\nSubject: ${subject}`, body), kind, subject)
})

test('vacation replies and the answers of people record nothing', async () => {
  for (const [header, body] of [
    ['Return-Path: <>\nFrom: ada@example.com\nSubject: Abwesend', 'Ich bin im Urlaub. Mail fails until Monday.'],
    ['Return-Path: <>\nFrom: ada@example.com\nSubject: Réponse automatique : absence', 'invalid until Monday'],
    ['Return-Path: <>\nX-Autoreply: yes\nFrom: ada@example.com\nSubject: Thanks', 'We are unable to answer.'],
    ['Return-Path: <>\nFrom: ada@example.com\nSubject: Sign in to Acme', 'I am unable to answer until Monday.'],
    ['Return-Path: <>\nFrom: ada@example.com\nPrecedence: auto_reply\nSubject: Hi', 'No mail will be delivered.'],
    ['From: ada@example.com\nSubject: Re: Undelivered Mail Returned to Sender', 'Why did it fail?'],
    ['From: ada@example.com\nSubject: AW: Delivery failed', 'I am unable to open it: error 550.'],
    ['From: ada@example.com\nSubject: An error', 'I am unable to sign in.'],
  ] as const)
    assert.equal(await prose(header, body), 'other', header)
})

test('a cause that is said in words is recorded, with the line that says it', async () => {
  for (const [body, cause, reply] of [
    ['An email you sent was rejected.\n\nreject reason: Mailbox full', 'mailbox_full', 'reject reason: Mailbox full'],
    [
      'Could not be delivered to: <ada@example.com>\nAs their mailbox is full.',
      'mailbox_full',
      'As their mailbox is full.',
    ],
    ['It failed.\n\nThe mailbox\nis full.', 'mailbox_full', 'The mailbox is full.'],
    ['It failed.\n\nSorry, there is no such user here.', 'no_mailbox', 'Sorry, there is no such user here.'],
    ['It failed.\n\nOperation timed out', 'unreachable', 'Operation timed out'],
    ['It failed.', 'unknown', 'It failed.'],
  ] as const) {
    const finding = await judge(`${fromDaemon}\n\n${body}`)
    assert.deepEqual(finding.kind === 'bounced' && [finding.cause, finding.reply.text], [cause, reply])
    assert.equal(provesNoMailbox(finding), false)
  }
})

test('a report whose fields name no recipient, in a text without a reply, is about nobody', async () => {
  const report = (text: string) =>
    [
      'From: Mail Delivery Subsystem <MAILER-DAEMON@relay.acme.test>',
      'Subject: Returned mail: see transcript for details',
      'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
      '',
      '--b',
      '',
      `The original message was received at Sat, 28 Nov 2026 00:51:02 GMT${text}`,
      '',
      '--b',
      'Content-Type: message/delivery-status',
      '',
      'Reporting-MTA: dns; relay.acme.test',
      'Deliver-By-Date: Sat, 28 Nov 2026 00:51:10 GMT',
      '',
      '--b--',
    ].join('\r\n')
  const kindOf = async (text: string) => (await readReport(Buffer.from(report(text)), null)).kind
  assert.equal(await kindOf(''), 'other')
  assert.equal(await kindOf('\r\n\r\n550 5.1.1 User unknown'), 'bounced')
})
