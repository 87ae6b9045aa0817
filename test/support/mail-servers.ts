/**
 * Real Exim, OpenSMTPD and Sendmail beside the installed Postfix. Each takes mail on a free loopback port. It
 * relays mail for acme.test and its subdomains to `homePort`, and all other mail to `nextPort`; so a
 * report about a message from there arrives at `homePort`.
 */
import { freePort } from './ports.ts'
import { isListening } from './postfix.ts'
import type { Scope } from './temporary.ts'
import { lackingPackage, startInThrowAwayRoot } from './throw-away-root.ts'
import { eventually } from './wait.ts'

export type MailServer = {
  /** A skip reason, or false. */
  lacking(): string | false
  start(scope: Scope, nextPort: number, homePort: number): Promise<{ port: number; log?: () => string }>
}

type Ports = { port: number; nextPort: number; homePort: number }

const mailServer = (debianPackage: string, commands: (ports: Ports) => string): MailServer => ({
  lacking: () => lackingPackage(debianPackage),
  async start(scope, nextPort, homePort) {
    const port = await freePort()
    const { log } = startInThrowAwayRoot(scope, debianPackage, commands({ port, nextPort, homePort }))
    await eventually(() => isListening(port)).catch(() => {
      throw new Error(`${debianPackage} does not listen: ${log()}`)
    })
    return { port, log }
  },
})

export const exim = mailServer(
  'exim4-daemon-light',
  ({ port, nextPort, homePort }) => `
useradd --system Debian-exim
install -d -o Debian-exim /var/spool/exim4 /var/log/exim4 /etc/exim4
install -o Debian-exim /dev/null /var/log/exim4/mainlog
cat > /etc/exim4/exim4.conf <<'.'
primary_hostname = relay.acme.test
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
acl_smtp_rcpt = accept
dsn_advertise_hosts = *
tls_advertise_hosts =
begin routers
home:
  driver = manualroute
  domains = acme.test : *.acme.test
  route_list = * 127.0.0.1
  self = send
  transport = home
next:
  driver = manualroute
  route_list = * 127.0.0.1
  self = send
  transport = next
begin transports
home:
  driver = smtp
  port = ${homePort}
next:
  driver = smtp
  port = ${nextPort}
.
tail -f /var/log/exim4/mainlog &
exim4 -bdf &`,
)

export const openSmtpd = mailServer(
  'opensmtpd',
  ({ port, nextPort, homePort }) => `
useradd --system --home-dir /var/lib/opensmtpd/empty opensmtpd
useradd --system opensmtpq
install -d /var/lib/opensmtpd/empty
cat > /etc/smtpd.conf <<'.'
listen on 127.0.0.1 port ${port} hostname relay.acme.test
action home relay host smtp://127.0.0.1:${homePort}
action next relay host smtp://127.0.0.1:${nextPort}
match from any for domain { "acme.test", "*.acme.test" } action home
match from any for any action next
.
smtpd -d &`,
)

const newSendmail = (rules: string) =>
  mailServer(
    'sendmail-bin',
    ({ port, nextPort, homePort }) => `
echo 127.0.0.1 localhost relay.acme.test > /etc/hosts
hostname relay.acme.test
install -d /etc/mail /var/spool/mqueue
m4 /usr/share/sendmail/cf/m4/cf.m4 - > /etc/mail/sendmail.cf <<'.'
OSTYPE(linux)
DAEMON_OPTIONS(\`Addr=127.0.0.1, Port=${port}')
FEATURE(no_default_msa)
FEATURE(nocanonify)
FEATURE(accept_unresolvable_domains)
FEATURE(promiscuous_relay)
define(\`SMART_HOST', \`smtp:[127.0.0.1]')
define(\`SMTP_MAILER_ARGS', \`TCP $h ${nextPort}')
define(\`RELAY_MAILER_ARGS', \`TCP $h ${homePort}')
MAILER(smtp)
LOCAL_RULE_0
R$* < @ $* acme.test . > $*	$#relay $@ [127.0.0.1] $: $1 < @ $2 acme.test . > $3
${rules}.
/usr/libexec/sendmail/sendmail -bD -q1s &`,
  )

export const sendmail = newSendmail('')

/** It refuses a name in EHLO without a dot, at MAIL. Its own `block_bad_helo` trusts loopback. */
export const strictSendmail = newSendmail(`LOCAL_RULESETS
SLocal_check_mail
R$*	$: $&s
R$* . $*	$@ OK
R$*	$#error $@ 5.7.1 $: "550 bogus HELO name used: " $&s
`)
