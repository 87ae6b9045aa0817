/**
 * Completes the lock files: `npm install` drops optional packages that a registry mirror lacks
 * (builds for other platforms), and `npm ci` then refuses the lock. Run it after `npm install`:
 * `npx node test/support/complete-lock.ts`. It also removes the registry address of each package.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

type Package = {
  version: string
  resolved?: string
  integrity?: string
  link?: boolean
  dev?: boolean
  optional?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}
type Lock = { packages: Record<string, Package> }

const root = fileURLToPath(new URL('../../', import.meta.url))
const listed = ['ls-files', '--cached', '--others', '--exclude-standard', '*package-lock.json']

/** The lock file of the checkout, and those of tools that are installed when they are used. */
export const lockFiles = execFileSync('git', listed, { cwd: root, encoding: 'utf8' })
  .trimEnd()
  .split('\n')
  .map((file) => join(root, file))
export const readLock = (file: string): Lock => JSON.parse(readFileSync(file, 'utf8')) as Lock

/** Optional dependencies that have no entry of their own. */
export function missingOptionals(lock: Lock): { name: string; version: string; dev: boolean }[] {
  return Object.values(lock.packages).flatMap(({ optionalDependencies = {}, dev = false }) =>
    Object.entries(optionalDependencies)
      .filter(([name]) => lock.packages[`node_modules/${name}`] === undefined)
      .map(([name, version]) => ({ name, version, dev })),
  )
}

const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32', 'wasm32']
const processors = ['arm64', 'arm', 'ia32', 'ppc64', 'riscv64', 's390x', 'x64']

function describe({ name, version, dev }: { name: string; version: string; dev: boolean }): Package {
  const words = name.split(/[/-]/)
  const os = systems.filter((system) => words.includes(system))
  const cpu = processors.filter((processor) => words.includes(processor))
  const libc = name.includes('musl') ? ['musl'] : []
  return { version, ...(dev ? { dev } : {}), optional: true, os, cpu, ...(libc.length > 0 ? { libc } : {}) }
}

function complete(file: string): void {
  const lock = readLock(file)
  for (const missing of missingOptionals(lock)) lock.packages[`node_modules/${missing.name}`] = describe(missing)
  // Workspaces keep their path.
  for (const entry of Object.values(lock.packages)) {
    if (entry.resolved?.startsWith('http')) delete entry.resolved
  }
  const sorted = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
  writeFileSync(file, `${JSON.stringify({ ...lock, packages: sorted }, null, 2)}\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) lockFiles.forEach(complete)
