/** Logto's own connector for email over HTTP, configured from the block that Connect shows. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { logto } from '../../src/domain/auth-hooks/logto.ts'
import { startAuthHooks } from '../support/auth-hooks.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { eventually } from '../support/wait.ts'

const connectorFile = toolPath('connector-http-email')
const skip = lacking('connector-http-email')

const { service, connect } = await startAuthHooks({ after })
const { secret } = await connect('logto')

/** The block is JSON, as Logto's console takes it. */
const [{ block = '{}' } = {}] = logto.setUp({ url: `${service.urls.authHooks}/logto/acme`, secret })
type Config = { readonly endpoint: string; readonly authorization: string }
const config = JSON.parse(block) as Config

type Connector = { sendMessage(data: object): Promise<unknown> }
type Options = { readonly getConfig: () => Promise<unknown> }
type ConnectorModule = { readonly default: (options: Options) => Promise<Connector> }

/** Sends a sample as Logto does. */
async function send(kind: string, given: Config, to: string): Promise<unknown> {
  const { default: createConnector } = (await import(connectorFile)) as ConnectorModule
  const connector = await createConnector({ getConfig: async () => given })
  return connector.sendMessage({ ...logto.sample(kind), to })
}

for (const kind of Object.keys(logto.kinds).filter((name) => name !== 'OrganizationInvitation'))
  test(`Logto sends ${kind}, and the email arrives with its code`, { skip }, async () => {
    const to = `${kind.toLowerCase()}@example.com`
    await send(kind, config, to)
    const email = await eventually(async () => {
      const answer = await fetch(`${service.urls.inbox}/api/inbox/latest?to=${to}`)
      return answer.ok ? ((await answer.json()) as { code: string }) : null
    })
    assert.match(email.code, /^\d{6}$/)
  })

test('a refusal reaches Logto as the short message that it shows to people', { skip }, async () => {
  await assert.rejects(send('NoSuchType', config, 'refused@example.com'), (error: { data?: unknown }) => {
    assert.match(JSON.stringify(error.data ?? String(error)), /postern: unsupported_email \(req_\w+\)/)
    return true
  })
})

test('a wrong secret is an error of the connector', { skip }, async () => {
  const wrong = { ...config, authorization: `${config.authorization.slice(0, -1)}_` }
  await assert.rejects(send('SignIn', wrong, 'wrong@example.com'))
})
