/**
 * `npm run build`: makes `dist/`, the npm package, from which the image, the Debian package and the tarball
 * are made too. A checkout runs without it. `npm run check` checks the types.
 */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build as bundle, type Plugin } from 'esbuild'
import { newDocument } from '../src/web/operators/api/openapi.ts'
import { dropDeadLinks } from './drop-dead-links.ts'
import { completeDocument } from './tables.ts'

export const root = fileURLToPath(new URL('..', import.meta.url))
export const dist = join(root, 'dist')

type Manifest = Record<'name' | 'version' | 'description' | 'license' | 'type', string> & {
  /** Where the project is hosted; a release writes it (release.ts). */
  readonly repository?: object
  readonly homepage?: string
  readonly bugs?: string
  readonly keywords: readonly string[]
  readonly bin: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
}

export const readManifest = (): Manifest => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** In a checkout npm runs on Node 20 too; only the package needs Node 24, because it brings none. */
function packageManifest(): object {
  const { name, version, description, keywords, homepage, bugs, repository, license, type, bin, dependencies } =
    readManifest()
  return {
    ...{ name, version, description, keywords, homepage, bugs, repository, license, type, bin },
    engines: { node: '>=24' },
    exports: { './package.json': './package.json' },
    publishConfig: { provenance: true },
    dependencies,
  }
}

const src = join(root, 'src')

/** The program, and the threads, whose files stay where the program looks for them. */
const entryPoints = [
  'main.ts',
  'intake/read-mail-thread.ts',
  ...['writer', 'reader', 'checkpointer'].map((name) => `store/sqlite/threads/${name}.ts`),
]

/** Chunks are in `dist/src/`, so `import.meta.url` is replaced by the URL of the module's own file. */
const filesBesideModules: Plugin = {
  name: 'files-beside-modules',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const url = `new URL('./${relative(src, path)}', import.meta.url)`
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url), loader: 'ts' }
    })
  },
}

/** Packages whose code is in the bundles, and whose licence is beside them. */
const bundled = ['typebox']

/** Loading 1,200 modules takes 12 MB and a quarter of the time to start; so the code is in 60 files. */
async function bundleCode(): Promise<void> {
  const { metafile } = await bundle({
    absWorkingDir: root,
    metafile: true,
    entryPoints: entryPoints.map((file) => join(src, file)),
    outbase: src,
    outdir: join(dist, 'src'),
    bundle: true,
    splitting: true,
    chunkNames: 'chunk-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node24',
    external: Object.keys(readManifest().dependencies),
    plugins: [filesBesideModules],
  })
  const packages = Object.keys(metafile.inputs).flatMap(
    (file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? [],
  )
  const others = packages.filter((name) => !bundled.includes(name))
  if (others.length > 0) throw new Error(`${others[0]} is imported by the service, but it is no dependency`)
  for (const name of bundled) cpSync(join(root, 'node_modules', name, 'license'), join(dist, `LICENSE.${name}`))
}

export async function build(): Promise<void> {
  rmSync(dist, { recursive: true, force: true })
  await bundleCode()
  const copied = [
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    ...globSync('{bin/*.js,src/**/*.{sql,css,js,svg,json},docs/*.{md,yaml}}', { cwd: root }),
  ]
  for (const file of copied) {
    mkdirSync(join(dist, dirname(file)), { recursive: true })
    cpSync(join(root, file), join(dist, file))
  }
  for (const file of globSync('docs/*.md', { cwd: dist }))
    writeFileSync(join(dist, file), completeDocument(readFileSync(join(dist, file), 'utf8')))
  dropDeadLinks(dist)
  const write = (file: string, content: object) =>
    writeFileSync(join(dist, file), `${JSON.stringify(content, null, 2)}\n`)
  write('package.json', packageManifest())
  write('docs/management.json', newDocument(readManifest().version))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await build()
  console.log('built dist/: the npm package ("npm pack ./dist" makes its tarball)')
}
