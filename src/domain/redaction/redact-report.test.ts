/** Reports come when nothing of the email is kept: shapes, and the addresses that the report names. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redact } from './redact.ts'

const report = (text: string, addresses: readonly string[] = ['ada.lovelace+x@example.com']) =>
  redact(text, { kind: 'report', addresses })

const check = (pairs: readonly (readonly [string, string])[]) => {
  for (const [text, shown] of pairs) assert.equal(report(text), shown)
}

const sealed = 'AbC9dEf0GhI1jKl2MnO3pQr4StU5vWx6'

test('links go with and without a scheme, encoded, defanged and folded', () => {
  check([
    [`554 5.7.1 listed: links.acme.test/acme/${sealed}`, '554 5.7.1 listed: <link>'],
    ['554 see acme.test/reset?x=1 now', '554 see <link> now'],
    ['554 localhost:3000/auth/x', '554 <link>'],
    [`554 hxxps[:]//links[.]acme[.]test/acme/${sealed} is bad`, '554 <link> is bad'],
    [`554 links(dot)acme(dot)test/acme/${sealed}`, '554 <link>'],
    [`554 https:\\/\\/links.acme.test\\/acme\\/${sealed}`, '554 <link>'],
    [`554 https%3A%2F%2Flinks.acme.test%2Facme%2F${sealed}`, '554 <link>'],
    [`554 https=3A=2F=2Flinks.acme.test=2Facme=2F${sealed}`, '554 <link>'],
    [`554 &#104;ttps&#58;//links.acme.test/acme/${sealed}`, '554 <link>'],
    [`554 https:// links.acme.test/acme/${sealed}`, '554 <link> <link>'],
    [`554 /acme/${sealed}`, '554 /acme/<token>'],
  ])
})

test('tokens and secrets go by their shape', () => {
  check([
    [`550 found ${sealed}`, '550 found <token>'],
    ['550 found 0123456789abcdef0123', '550 found <token>'],
    ['550 id 3f2504e0-4f89-11d3-9a0c-0305e82c3301', '550 id <token>'],
    ['550 key pst_abc and psl_x1, whsec_Zm9v', '550 key <secret> and <secret>, <secret>'],
    ['550 eyJhbGciOi.eyJz.c2ln', '550 <secret>'],
  ])
})

test('addresses go in every form', () => {
  check([
    ['550 <bob@example.net>: gone', '550 <address>: gone'],
    ['550 "bob smith"@example.net gone', '550 <address> gone'],
    ['550 bob@[192.0.2.1] gone', '550 <address> gone'],
    ['550 bob @ example.net gone', '550 <address> gone'],
    ['550 bob＠example.net gone', '550 <address> gone'],
    ['550 bob=40example.net gone', '550 <address> gone'],
    ['550 bob%40example.net gone', '550 <address> gone'],
    [String.raw`550 b\u0040example.net gone`, '550 <address> gone'],
    [String.raw`550 b\\u0040example.net gone`, '550 <address> gone'],
    [String.raw`550 b\u{40}example.net gone`, '550 <address> gone'],
    [String.raw`550 b\x40example.net gone`, '550 <address> gone'],
    [String.raw`550 b\100example.net gone`, '550 <address> gone'],
    ['550 b%u0040example.net gone', '550 <address> gone'],
    ['550 b&commat;example.net gone', '550 <address> gone'],
    ['550 bob%2540example.net gone', '550 <address> gone'],
    ['550 bob&#64;example.net gone', '550 <address> gone'],
    ['550 bob=example.net is no VERP', '550 <address> is no VERP'],
    ['550 example.net!bob gone', '550 <address> gone'],
    ['550 bob%example.net gone', '550 <address> gone'],
    ['550 bob[at]example[dot]net gone', '550 <address> gone'],
    ['550 bob at example dot net gone', '550 <address> gone'],
    ['550 bob (at) example.net gone', '550 <address> gone'],
  ])
})

test('the local part of an address that the report names goes, alone and cut', () => {
  check([
    ['550 5.1.1 ada.lovelace unknown', '550 5.1.1 <address> unknown'],
    ['550 5.1.1 ADA.LOVELACE+X unknown', '550 5.1.1 <address> unknown'],
    ['550 5.1.1 ada.love lace unknown', '550 5.1.1 <address> unknown'],
    ['550-5.1.1 ada.love\r\n550 5.1.1 lace unknown', '550-5.1.1 <address> unknown'],
    ['550 5.1.1 ada%2Elovelace unknown', '550 5.1.1 <address> unknown'],
    ['550 5.1.1 <ada.lovel', '550 5.1.1 <<address>'],
    ['550 5.1.1 <bob@example.net> unknown, bob is', '550 5.1.1 <address> unknown, <address> is'],
  ])
  assert.equal(report('550 Mailbox Full', ['mailboxfull@example.com']), '550 Mailbox Full')
  assert.equal(report('550 no user', ['user@example.com']), '550 no user')
  assert.equal(report('550 5.1.1 491701 gone', ['491701@example.com']), '550 5.1.1 <address> gone')
})

test('everything that could be a one-time code goes', () => {
  check([
    ['554 your code is 4711', '554 your code is <code>'],
    ['554 spam: 246813 it said', '554 spam: <number> it said'],
    ['554 spam: 1234567890', '554 spam: <number>'],
    ['554 spam: 246 813, 246-813, 246.813, 2 4 6 8 1 3', '554 spam: <number>, <number>, <number>, <number>'],
    ['554 246 813', '554 <number>'],
    ['554 246 813 246 813 246 813', '554 <number>'],
    ['554 <b>246</b><b>813</b>', '554 <b><number></b>'],
    ['554 246=20813, 246%20813, 246&nbsp;813', '554 <number>, <number>, <number>'],
    ['554 %32%34%36%38%31%33 =32=34=36=38=31=33', '554 <number> <number>'],
    ['554 &#50;&#52;&#54;&#56;&#49;&#51;', '554 <number>'],
    ['554 id=7246813x', '554 id=<number>'],
    ['554 ２４６８１３', '554 <number>'],
    ['554 K7Q2M9 and CAN-4RY-x and qwhx-2', '554 <number> and <number> and <number>'],
    ['554 code: QWHX', '554 code: <code>'],
    ['554 QWHXKZ', '554 <number>'],
  ])
})

test('letters and digits go in any case and place, and capitals that are no word of replies', () => {
  check([
    ['554 rejected "KXRTQ7" content', '554 rejected "<number>" content'],
    ['554 Subject: KXRTQ7 is your Acme code', '554 Subject: <number> is your Acme code'],
    ['554 kxrtq42, KXR42 and KxRtQw, qwhxkz', '554 <number>, <number> and <number>, <number>'],
    ['554 "BANQXU" BANQXU **BANQXU**', '554 "<number>" <number> **<number>**'],
    [`554 'BANQ' "SPAM" KXRTBL`, `554 '<number>' "SPAM" <number>`],
    ['554 K X R T Q 7; KXR TQ7; KXR-TQ7; B-A-N-Q-X-U', '554 <number>; <number>; <number>; <number>'],
    ['554 KXR<b></b>TQ7, KXR=20TQ7', '554 <number>, <number>'],
    [
      '554 Use KXRTQ7.IF you did not, kxrtq7.if, BANQXU.IF',
      '554 Use <number>.IF you did not, <number>.if, <number>.IF',
    ],
    ['554 =?utf-8?B?MjQ2ODEz?= 323436383133', '554 =?utf-8?B?<number>?= <number>'],
  ])
})

test('digits go beside words that have numbers, and in groups of other signs', () => {
  check([
    ['554 you may 246813 use, Mar 246813', '554 you may <number> use, Mar <number>'],
    ['554 see RFC 246813', '554 see RFC <number>'],
    ['554 Use 246813.IF you did not', '554 Use <number>.IF you did not'],
    ['554 Use 246813.de, 2468-12-13', '554 Use <number>.de, <number>'],
    ['554 24:68:13, 246:813, 246::813', '554 <number>, <number>, <number>'],
    ['554 24.68.13, 2.4.6.8.1.3', '554 <number>, <number>'],
    ['554 246/813; 246_813; 246,813', '554 <number>; <number>; <number>'],
    ['554 550 550 813', '554 550 <number>'],
    ['550 550 813', '550 <number>'],
    ['554-813', '554-<number>'],
    ['host said: 554-813', 'host said: <number>'],
    ['554 acme.test/123', '554 <link>'],
    ['554 acme.test/24 192.0.2.0/813', '554 <link> <link>'],
    [`554 <b>246</b><i></i><u></u><p x="${'a'.repeat(100)}">813</p>`, '554 <b><number></p>'],
    [String.raw`554 \x32\x34\x36\x38, \u0032\u0034\u0036\u0038`, '554 <number>, <number>'],
  ])
})

test('a diagnosis stays: codes, words, servers, addresses of networks, dates', () => {
  for (const text of [
    '550 5.1.1 user unknown',
    '550 5.7.509 Access denied, sending domain [ACME.TEST] does not pass DMARC',
    'host mx1.acme.test[192.0.2.222] said: 552 5.2.2 mailbox full (#5.2.2)',
    '421 4.7.0 [TSS04] Messages from 192.0.2.192 deferred - 4.16.55.1',
    '550 blocked by bl.acme.test: 192.0.2.0/24, 2001:db8::8a2e:370:7334 (S3140)',
    '550 4.7.500-699 AUTH SPF/DKIM, see RFC 5321 and 5322.From',
    '451 4.4.1 connect to mx2.acme.test:25 timed out at 2026-11-24T21:26:40Z, 24 Nov 2026',
    '550 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; 8BITMIME, UTF-8',
    '550-5.7.1 no\r\n550 5.7.1 spam'.replace('\r\n', ' '),
    '550 5.7.1 ACCESS DENIED: YOUR MESSAGE WAS REJECTED AS SPAM',
    '452 4.2.2 MAILBOX FULL, OVER QUOTA; 421 GREYLISTED, TRY AGAIN LATER',
    '550 550 5.1.1 unknown; 450 4.5.3 100 recipients',
    '550 URIBL_BLACK RCVD_IN_XBL, McAfee OpenDKIM, OU-001 RCP-P2, TLSv1.2',
    '550 MX1A2B.PROD.OUTLOOK.COM EXAMPLE.DE office365.com [IPv6:2001:db8::1]:25 2001:4860:4860::8844',
    '451 rate limit: retry in 300s, Tue, 24 Nov 2026 21:26:40, 2026-11-24 21:26',
    'ESOCKET: connect ECONNREFUSED',
  ])
    assert.equal(report(text), text)
})

test('what passes twice changes once', () => {
  const text = `550 <bob@example.net> links.acme.test/acme/${sealed} 246813 ${sealed} psl_abc`
  assert.equal(report(report(text)), report(text))
})
