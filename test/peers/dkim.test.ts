/** Signatures and the expiry as other software reads them, after a real Postfix. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import PostalMime from 'postal-mime'
import { dkimName, formatDkimRecord } from '../../src/domain/dns/dkim-record.ts'
import { emailTypes } from '../../src/domain/request/email-kinds.ts'
import { makeSigningKey } from '../../src/store/crypto/signing-key.ts'
import { verifySignatures } from '../support/dkim.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { operator } from '../support/operator.ts'
import { startPostfix } from '../support/postfix.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const noPostfix = lacking('postfix')
const records: Record<string, string> = {}
/** A whole second, as in a header. */
const expiresAt = Math.floor(Date.now() / 1000) * 1000 + 3_600_000

/** One email of each type, as the server behind Postfix gets it, signed with RSA and Ed25519. */
async function sendSigned(): Promise<Buffer[]> {
  const sink = await startSmtpServer({ after })
  const postfix = await startPostfix({ after }, sink.port)
  const service = await startTestService({ after }, { relays: [relayTo(postfix.port)] })
  const { app, config, store } = service
  for (const [selector, algorithm] of [
    ['p1r', 'rsa'],
    ['p1e', 'ed25519'],
  ] as const) {
    const key = await makeSigningKey(config.ring, { domain: 'acme.test', selector, algorithm })
    await store.addSigningKey({ ...key, app: app.id }, operator)
    await store.activateSigningKey({ domain: 'acme.test', selector, app: app.id }, operator)
    records[dkimName(selector, 'acme.test')] = formatDkimRecord(algorithm, key.publicKey)
  }
  for (const [n, type] of emailTypes.entries()) {
    const names = { organisationName: 'Größe GmbH', inviterName: 'Ada' }
    const locale = ['en', 'ja', 'ar', 'de'][n]
    const answer = await service.post(
      validBody({ type, to: `${type}@example.com`, expiresAt: new Date(expiresAt).toISOString(), locale, ...names }),
    )
    assert.equal(answer.status, 202)
  }
  await eventually(() => sink.received.length === emailTypes.length, 30_000)
  return sink.received.map(({ raw }) => Buffer.from(raw))
}
const messages = noPostfix === false ? await sendSigned() : []

const altered = (message: Buffer): readonly (readonly [string, Buffer])[] => {
  const text = message.toString('latin1')
  const alter = (from: string, to: string) => {
    assert.ok(text.includes(from), from)
    return Buffer.from(text.replace(from, to), 'latin1')
  }
  return [
    ['the body', alter('\r\n\r\n--', '\r\n\r\nx--')],
    ['a header', alter('Feedback-ID: ', 'Feedback-ID: x')],
    ['the expiry', alter('Expires: ', 'Expires: x')],
    ['a second expiry', alter('\r\nExpires: ', '\r\nExpires: Fri, 31 Dec 9999 23:59:59 +0000\r\nExpires: ')],
    ['a second From', Buffer.concat([Buffer.from('From: <eve@evil.test>\r\n'), message])],
  ]
}

/** Runs a judge on a message in a file; the results of the signatures that it knows. */
type Judge = (file: string, folder: string) => string[]

const python = `import dkim,json,sys
records=json.load(open(sys.argv[2])); message=open(sys.argv[1],'rb').read()
look=lambda name,timeout=5: records[name.decode().rstrip('.')].encode()
judge=dkim.DKIM(message)
for n in range(2):
  try: print('pass' if judge.verify(idx=n,dnsfunc=look) else 'fail')
  except dkim.DKIMException: print('fail')`

const perl = `use Mail::DKIM::Verifier; use JSON::PP;
local $/; open F,$ARGV[1]; my $r=decode_json(<F>); open M,$ARGV[0]; my $m=<M>;
{ no warnings; *Mail::DKIM::DNS::query = sub { my $t=$r->{$_[0]}; $t ? (bless {t=>$t},'RR') : () } }
package RR; sub char_str_list { unpack('(A255)*',$_[0]{t}) } sub txtdata { $_[0]{t} } sub type { 'TXT' }
package main; my $v=Mail::DKIM::Verifier->new; $v->PRINT($m); $v->CLOSE;
print map { ($_->result eq 'pass' ? 'pass' : $_->algorithm =~ /ed25519/ ? 'unsupported' : 'fail')."\\n" } $v->signatures;`

const mailauth = toolPath('mailauth')
const javascript = `const { dkimVerify } = require(process.argv[1]);
const { readFileSync } = require('node:fs');
const records = JSON.parse(readFileSync(process.argv[3], 'utf8'));
const resolver = async (name) => [[records[name]]];
dkimVerify(readFileSync(process.argv[2]), { resolver }).then(({ results }) => {
  for (const { status } of results) console.log(status.result === 'pass' ? 'pass' : 'fail');
})`

const lines = (text: string) => text.trim().split('\n')
const judges: Readonly<Record<string, { skip: string | false; both: readonly string[]; run: Judge }>> = {
  dkimpy: {
    skip: lacking('dkimpy', 'nacl'),
    both: ['pass', 'pass'],
    run: (file, folder) =>
      lines(execFileSync(toolPath('python3'), ['-c', python, file, `${folder}/records`], { encoding: 'utf8' })),
  },
  'Mail::DKIM': {
    skip: lacking('Mail::DKIM', 'perl'),
    both: ['pass', 'unsupported'],
    run: (file, folder) =>
      lines(execFileSync(toolPath('perl'), ['-e', perl, file, `${folder}/records`], { encoding: 'utf8' })),
  },
  mailauth: {
    skip: lacking('mailauth'),
    both: ['pass', 'pass'],
    run: (file, folder) =>
      lines(
        execFileSync(process.execPath, ['-e', javascript, mailauth, file, `${folder}/records`], {
          encoding: 'utf8',
        }),
      ),
  },
  opendkim: {
    skip: lacking('opendkim'),
    both: ['pass'],
    run: (file, folder) => {
      const data = Object.entries(records).map(([name, text]) => `${name} ${text}\n`)
      writeFileSync(join(folder, 'dns'), data.join(''))
      const config = join(folder, 'opendkim.conf')
      writeFileSync(config, `TestDNSData ${folder}/dns\nMode v\nSyslog no\nOn-Default accept\n`)
      const out = execFileSync(toolPath('opendkim'), ['-x', config, '-v', '-v', '-v', '-t', file], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      return [/dkim=pass/.test(out) ? 'pass' : 'fail']
    },
  },
}

for (const [name, { both, run, skip }] of Object.entries(judges))
  test(`${name} verifies every type of email, and refuses what was altered`, {
    skip: noPostfix || skip,
  }, (t) => {
    const folder = temporaryFolder(t)
    writeFileSync(join(folder, 'records'), JSON.stringify(records))
    const judge = (message: Buffer) => {
      const file = join(folder, 'message')
      writeFileSync(file, message)
      return run(file, folder)
    }
    for (const message of messages) assert.deepEqual(judge(message), both)
    const [message = Buffer.alloc(0)] = messages
    for (const [change, bytes] of altered(message)) assert.ok(!judge(bytes).includes('pass'), change)
  })

test('our own judge, which other tests use, agrees', { skip: noPostfix }, () => {
  const judge = (message: Buffer) => verifySignatures(message, (name) => records[name])
  for (const message of messages) assert.deepEqual(judge(message), ['pass', 'pass'])
  const [message = Buffer.alloc(0)] = messages
  for (const [change, bytes] of altered(message)) assert.ok(!judge(bytes).includes('pass'), change)
})

const readExpiry = {
  'postal-mime': {
    skip: false,
    run: async (file) => {
      const { headers } = await PostalMime.parse(readFileSync(file))
      return String(Date.parse(headers.find(({ key }) => key === 'expires')?.value ?? '') / 1000)
    },
  },
  Python: {
    skip: lacking('python3'),
    run: (file) => {
      const program = `import email.policy,sys
message=email.message_from_binary_file(open(sys.argv[1],'rb'),policy=email.policy.SMTP)
print(int(email.utils.parsedate_to_datetime(message['Expires']).timestamp()))`
      return execFileSync(toolPath('python3'), ['-c', program, file], { encoding: 'utf8' })
    },
  },
  Go: {
    skip: lacking('go'),
    run: (file, folder) => {
      const program = join(folder, 'expiry.go')
      writeFileSync(
        program,
        `package main
import ("fmt"; "net/mail"; "os")
func main() {
  message, err := mail.ReadMessage(os.Stdin); if err != nil { panic(err) }
  at, err := mail.ParseDate(message.Header.Get("Expires")); if err != nil { panic(err) }
  fmt.Println(at.Unix())
}`,
      )
      return execFileSync(toolPath('go'), ['run', program], { encoding: 'utf8', input: readFileSync(file) })
    },
  },
  MailTools: {
    skip: lacking('Mail::DKIM'), // whose package needs MailTools
    run: (file) => {
      const program = `use Mail::Internet; use Date::Parse; open F,$ARGV[0];
print str2time(Mail::Internet->new(\\*F)->head->get('Expires'))`
      return execFileSync(toolPath('perl'), ['-e', program, file], { encoding: 'utf8' })
    },
  },
} satisfies Record<string, { skip: string | false; run: (file: string, folder: string) => string | Promise<string> }>

for (const [name, { run, skip }] of Object.entries(readExpiry))
  test(`${name} reads the instant at which the link expires`, { skip: noPostfix || skip }, async (t) => {
    const folder = temporaryFolder(t)
    const file = join(folder, 'message')
    for (const message of messages) {
      writeFileSync(file, message)
      assert.equal((await run(file, folder)).trim(), String(expiresAt / 1000))
    }
  })
