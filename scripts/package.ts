/**
 * `npm run package -- FORMAT…`: makes the artifacts of a release in `out/`, all from the folder that `npm run
 * build` makes. Formats: `npm`, `tarball`, `deb`; all if none is named. The same commit gives the same bytes.
 *
 * `POSTERN_PACKAGE_NODE` names the Node to bring along; usually that of this checkout.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, dist, readManifest, root } from './build.ts'
import { dropDeadLinks } from './drop-dead-links.ts'

const out = join(root, 'out')
const { version, description } = readManifest()
const node = process.env.POSTERN_PACKAGE_NODE ?? process.execPath
const architecture = process.arch === 'x64' ? 'amd64' : process.arch
const work = mkdtempSync(join(tmpdir(), 'postern-package-'))

const run = (command: string, args: readonly string[], cwd = root): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** The time in every archive: that of the commit. */
const epoch = process.env.SOURCE_DATE_EPOCH ?? run('git', ['log', '-1', '--format=%ct']).trim()

function makeNpm(): string {
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', out], dist))
  return join(out, packed.filename)
}

/**
 * The program with its dependencies, as the lock file has them, and Node: what stands in `/usr/lib/postern`.
 */
function makeTree(): string {
  const tree = join(work, 'tree')
  cpSync(dist, tree, { recursive: true })
  const modules = join(work, 'modules')
  mkdirSync(modules)
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(root, file), join(modules, file))
  run('npm', ['ci', '--omit=dev', '--workspaces=false', '--ignore-scripts', '--no-audit', '--no-fund'], modules)
  cpSync(join(modules, 'node_modules'), join(tree, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
  })
  rmSync(join(tree, 'node_modules/.bin'), { recursive: true, force: true })
  rmSync(join(tree, 'node_modules/.package-lock.json'))
  copyFileSync(node, join(tree, 'bin/node'))
  cpSync(join(root, 'packaging/systemd'), join(tree, 'systemd'), { recursive: true })
  for (const file of ['postern', 'postern.env', 'backup-daily'])
    cpSync(join(root, 'packaging/debian', file), join(tree, file === 'backup-daily' ? file : `systemd/${file}`))
  setModes(tree)
  return tree
}

/** Folders and programs 0755, other files 0644, whatever the umask is. */
function setModes(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) chmodSync(path, 0o755)
    else if (entry.isFile()) chmodSync(path, (statSync(path).mode & 0o100) === 0 ? 0o644 : 0o755)
  }
}

const archive = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner']

function makeTarball(tree: string): string {
  const name = `postern-${version}-linux-${architecture}`
  const file = join(out, `${name}.tar.xz`)
  run('tar', [...archive, `--transform=s,^tree,${name},`, '-cJf', file, basename(tree)], work)
  return file
}

function makeDeb(tree: string): string {
  const deb = join(work, 'deb')
  const place = (from: string, to: string) => {
    mkdirSync(join(deb, to, '..'), { recursive: true })
    cpSync(from, join(deb, to), { recursive: true, verbatimSymlinks: true })
  }
  const packaging = join(root, 'packaging')
  place(tree, 'usr/lib/postern')
  rmSync(join(deb, 'usr/lib/postern/systemd'), { recursive: true })
  rmSync(join(deb, 'usr/lib/postern/docs'), { recursive: true })
  place(join(dist, 'docs'), 'usr/share/doc/postern')
  for (const file of ['README.md', 'CHANGELOG.md']) place(join(dist, file), `usr/share/doc/postern/${file}`)
  dropDeadLinks(join(deb, 'usr/share/doc/postern'), { flat: true })
  place(join(packaging, 'debian/postern'), 'usr/bin/postern')
  place(join(packaging, 'debian/postern.env'), 'etc/postern/postern.env')
  for (const unit of ['postern.service', 'postern-backup.service', 'postern-backup.timer'])
    place(join(packaging, 'systemd', unit), `usr/lib/systemd/system/${unit}`)
  place(join(packaging, 'systemd/sysusers.conf'), 'usr/lib/sysusers.d/postern.conf')
  place(join(root, 'LICENSE'), 'usr/share/doc/postern/copyright')
  for (const script of ['postinst', 'prerm', 'postrm']) place(join(packaging, 'debian', script), `DEBIAN/${script}`)
  mkdirSync(join(deb, 'usr/share/man/man1'), { recursive: true })
  writeFileSync(join(deb, 'usr/share/man/man1/postern.1.gz'), gzipSync(manPage(tree), { level: 9 }))
  writeFileSync(join(deb, 'DEBIAN/conffiles'), '/etc/postern/postern.env\n')
  writeFileSync(join(deb, 'DEBIAN/control'), control(deb))
  setModes(deb)
  const file = join(out, `postern_${version}_${architecture}.deb`)
  const env = { ...process.env, SOURCE_DATE_EPOCH: epoch }
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', deb, file], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return file
}

// Node 26 needs glibc 2.28, and libatomic since version 25.
const control = (deb: string): string => `Package: postern
Version: ${version}
Architecture: ${architecture}
Maintainer: The Postern authors <postern@localhost>
Depends: libc6 (>= 2.28), libstdc++6, libatomic1, systemd (>= 251), util-linux
Installed-Size: ${kibibytes(deb)}
Section: mail
Priority: optional
Description: sends authentication emails before their links expire
 ${description}
`

const kibibytes = (folder: string): number =>
  Math.ceil(
    readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0) / 1024,
  )

/** Made of the help texts of the program, so that they stand in one place. */
function manPage(tree: string): string {
  const help = (...command: string[]): string =>
    run(process.execPath, [join(tree, 'bin/postern.js'), ...command, '--help'])
  /** The help of a command, and of the commands that it lists. */
  const all = (...command: string[]): string[] => {
    const text = help(...command)
    const [, list = ''] = /^Commands:\n((?: {2}.*\n)+)/m.exec(text) ?? []
    const inner = [...list.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = '']) => name)
    return [text, ...inner.filter((name) => name !== 'help').flatMap((name) => all(...command, name))]
  }
  const toRoff = (text: string): string => text.replace(/\\/g, '\\e').replace(/^([.'])/gm, '\\&$1')
  const [usage = '', ...commands] = all()
  const part = (title: string, text: string) => `.SH ${title}\n.nf\n${toRoff(text.trimEnd())}\n.fi\n`
  const date = new Date(Number(epoch) * 1000).toISOString().slice(0, 10)
  return `.TH POSTERN 1 ${date} "Postern ${version}"
.SH NAME
postern \\- ${description}
${part('USAGE', usage)}${part('COMMANDS', commands.join('\n'))}.SH EXIT STATUS
0 done, 1 refused or failed, 2 usage error.
.SH ENVIRONMENT
/usr/share/doc/postern/configuration.md has every variable.
.SH FILES
.TP
/etc/postern/postern.env
settings: NAME=value lines, read by the service and by the command when root runs it
.TP
/etc/postern/secret-keys
the key ring, made once by the installation
.TP
/var/lib/postern
the database of SQLite; backups/ has those of postern-backup.timer
.SH SEE ALSO
postern.service and postern-backup.timer, /usr/share/doc/postern/
`
}

const formats: Record<string, (tree: () => string) => string> = {
  npm: () => makeNpm(),
  tarball: (tree) => makeTarball(tree()),
  deb: (tree) => makeDeb(tree()),
}

const named = process.argv.slice(2)
const unknown = named.find((name) => formats[name] === undefined)
if (unknown !== undefined) {
  console.error(`package: unknown format "${unknown}". Formats: ${Object.keys(formats).join(', ')}`)
  process.exit(2)
}
try {
  mkdirSync(out, { recursive: true })
  await build()
  setModes(dist)
  let made: string | null = null
  const tree = () => (made ??= makeTree())
  for (const name of named.length > 0 ? named : Object.keys(formats)) {
    const file = formats[name]?.(tree) ?? ''
    console.log(`${file.slice(root.length)}  ${(statSync(file).size / 1e6).toFixed(1)} MB`)
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}
