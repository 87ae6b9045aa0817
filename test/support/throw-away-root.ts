/**
 * The files of this machine with another Debian package unpacked over them, for servers that cannot be
 * installed beside each other. Changes are in memory, seen by its own processes alone, and end with them.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lacking, toolPath } from './installed.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'

const unshare = toolPath('unshare')

/** A skip reason, or false if `startInThrowAwayRoot` can run `debianPackage` here. */
export function lackingPackage(debianPackage: string): string | false {
  const missing = lacking('apt-get', 'unshare')
  if (missing !== false) return missing
  const layer = mkdtempSync(join(tmpdir(), 'postern-test-'))
  try {
    execFileSync(unshare, argumentsFor(layer, fetchPackage(debianPackage), 'true'), { stdio: 'pipe' })
    return false
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: Buffer }
    const reason = String(stderr ?? message)
      .trim()
      .replaceAll('\n', ' ')
    return `skipped: cannot unpack ${debianPackage}: ${reason}`
  } finally {
    rmSync(layer, { recursive: true })
  }
}

/**
 * Runs shell commands as root, where `debianPackage` is unpacked and not configured. They end with the scope,
 * or with this process, along with every process that they started. `log` returns all that they printed.
 */
export function startInThrowAwayRoot(scope: Scope, debianPackage: string, commands: string): { log(): string } {
  // The first process of the namespace waits for the end of its input. The kernel ends all others with it.
  const script = `${commands}\nread -r _ || true`
  const child = spawn(unshare, argumentsFor(temporaryFolder(scope), fetchPackage(debianPackage), script))
  atEnd(scope, async () => {
    const ended = child.exitCode === null ? once(child, 'exit') : null
    child.stdin.end()
    await ended
  })
  child.stdin.on('error', () => {})
  let log = ''
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (text: string) => {
      log += text
    })
  return { log: () => log }
}

/** `layer` is an empty folder, `packages` one of `.deb` files. */
const argumentsFor = (layer: string, packages: string, commands: string): string[] => [
  ...['--mount', '--uts', '--pid', '--fork', '--kill-child', 'sh', '-ec'],
  `
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir -m 755 upper work root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" root
mount --rbind /dev root/dev
mount -t proc proc root/proc
for package in "$2"/*.deb; do
  [ ! -e "$package" ] || dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C root
done
exec chroot root sh -ec "$3"
`,
  ...['sh', layer, packages, commands],
]

/**
 * A folder with the package and with what it needs and this machine lacks. apt downloads them once for each
 * version; nothing is installed.
 */
function fetchPackage(name: string): string {
  const policy = execFileSync('apt-cache', ['policy', name], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
  })
  const version = /Candidate: (\d\S*)/.exec(policy)?.[1]
  if (version === undefined) throw new Error('apt does not know it; run apt-get update')
  const folder = join(tmpdir(), `postern-packages-${name}-${version}`)
  if (!existsSync(folder)) download(name, version, folder)
  // Anybody may write into /tmp, and what is in the folder runs as root.
  if (statSync(folder).uid !== process.getuid?.()) throw new Error(`${folder} belongs to another user`)
  return folder
}

function download(name: string, version: string, folder: string): void {
  const unfinished = mkdtempSync(`${folder}.part-`)
  try {
    mkdirSync(join(unfinished, 'partial'))
    execFileSync(
      toolPath('apt-get'),
      [
        ...['install', '--download-only', '--yes', '--quiet=2', '--no-install-recommends'],
        ...['-o', 'APT::Sandbox::User=root', '-o', `Dir::Cache::archives=${unfinished}`],
        `${name}=${version}`,
      ],
      { stdio: 'pipe', timeout: 120_000 },
    )
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true })
    // Another process may have been faster.
    if (!existsSync(folder)) throw error
  }
}
