/** Type-checks the README's code with the types of the real libraries. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const pathTo = (path: string) => fileURLToPath(new URL(path, import.meta.url))
// Beside the libraries, so that they are found.
const folder = pathTo('./node_modules/.readme')
const text = readFileSync(pathTo('../README.md'), 'utf8')
const pieces = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, piece]) => piece ?? '')

const surroundings = `
declare const Deno: { serve(handler: (request: Request) => Promise<Response>): void; env: { get(name: string): string | undefined } }
declare module '@vercel/functions' { export function waitUntil(promise: Promise<unknown>): void }
`

test('the README’s code type-checks', () => {
  after(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/surroundings.d.ts`, surroundings)
  for (const [i, piece] of pieces.entries()) writeFileSync(`${folder}/piece-${i}.ts`, piece)
  const compilerOptions = {
    ...{ noUnusedLocals: false, declaration: false, types: [], lib: ['esnext', 'dom'] },
    paths: { '@postern/client': ['../../../src/postern.ts'], '@postern/client/*': ['../../../src/*.ts'] },
  }
  const config = { extends: '../../../../tsconfig.json', compilerOptions, include: ['*.ts'], exclude: [] }
  writeFileSync(`${folder}/tsconfig.json`, JSON.stringify(config))
  assert.ok(pieces.length >= 9)
  try {
    execFileSync(pathTo('../../node_modules/.bin/tsc'), ['--project', folder], { encoding: 'utf8' })
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout)
  }
})
