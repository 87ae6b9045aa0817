/** The pages of the site: documents of the repository with their links changed, and the pages made of OpenAPI. */
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { completeDocument } from '../scripts/tables.ts'
import { newDocument } from '../src/web/operators/api/openapi.ts'
import { type OpenApi, renderOperations } from './operations.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (file: string): string => readFileSync(join(root, file), 'utf8')

/** Documents outside `docs/`, and their pages. */
const elsewhere: Readonly<Record<string, string>> = {
  'ARCHITECTURE.md': 'architecture.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'security.md',
  'client/README.md': 'client.md',
}

type Section = { text: string; items: { text: string; link: string }[] }

/** Writes all pages, and `sidebar.json`: the sections and links of docs/index.md. */
export function writeContent(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  const files = [...globSync('docs/**/*.md', { cwd: root }), ...Object.keys(elsewhere)]
  const pages = new Map(files.map((file) => [file, elsewhere[file] ?? relative('docs', file)]))
  const write = (page: string, text: string) => {
    mkdirSync(dirname(join(folder, page)), { recursive: true })
    writeFileSync(join(folder, page), text)
  }
  const texts = new Map(files.map((file) => [file, completeDocument(read(file))]))
  for (const [file, text] of texts) write(pages.get(file) ?? '', changeLinks(text, file, pages))
  cpSync(join(root, 'docs/images'), join(folder, 'images'), { recursive: true })
  for (const chart of globSync('docs/*.svg', { cwd: root }))
    cpSync(join(root, chart), join(folder, relative('docs', chart)))

  const api = parse(read('docs/openapi.yaml')) as OpenApi
  const management: OpenApi = JSON.parse(JSON.stringify(newDocument('')))
  write('api-operations.md', `# The API, operation by operation\n\n${renderOperations(api)}`)
  write('management-operations.md', `# The management API, operation by operation\n\n${renderOperations(management)}`)
  const titles = new Map([...texts].map(([file, text]) => [file, /^# (.*)$/m.exec(text)?.[1] ?? file]))
  write('sidebar.json', JSON.stringify(readSidebar(texts.get('docs/index.md') ?? '', { pages, titles })))
}

const link = /(!?)\[([^\]]*)\]\(([^()\s#]+)(#[^()\s]*)?\)/g

/** Links to other files of the repository point to where it is hosted, or become plain text. */
function changeLinks(text: string, file: string, pages: ReadonlyMap<string, string>): string {
  const from = dirname(pages.get(file) ?? '')
  return text.replace(link, (whole, image: string, label: string, target: string, anchor = '') => {
    if (/^[a-z]+:/.test(target) || image === '!') return whole
    const found = join(dirname(file), target)
    const page = pages.get(found)
    if (page !== undefined) return `[${label}](${relative(from, page)}${anchor})`
    if (!existsSync(join(root, found))) throw new Error(`${file} links to ${target}, which does not exist`)
    const { GITHUB_REPOSITORY: repository, GITHUB_SERVER_URL: server = 'https://github.com' } = process.env
    return repository === undefined ? label : `[${label}](${server}/${repository}/blob/main/${found}${anchor})`
  })
}

type Known = { readonly pages: ReadonlyMap<string, string>; readonly titles: ReadonlyMap<string, string> }

function readSidebar(index: string, { pages, titles }: Known): Section[] {
  const toItem = (file: string) => {
    const page = pages.get(file)
    return page === undefined ? [] : [{ text: titles.get(file) ?? page, link: `/${page.replace(/\.md$/, '')}` }]
  }
  const sections = index.split(/^## /m).slice(1)
  const listed = new Set<string>()
  const sidebar = sections.map((section): Section => {
    const [text = ''] = section.split('\n')
    const files = Array.from(section.matchAll(link), ([, , , target = '']) => join('docs', target))
    for (const file of files) listed.add(file)
    return { text, items: files.flatMap(toItem) }
  })
  const reference = sidebar.find(({ text }) => text === 'Reference')?.items
  reference?.push({ text: 'API operations', link: '/api-operations' })
  reference?.push({ text: 'Management operations', link: '/management-operations' })
  const decisions = [...pages.keys()].filter((file) => file.startsWith('docs/adr/')).sort()
  for (const file of pages.keys())
    if (!listed.has(file) && file !== 'docs/index.md' && !decisions.includes(file))
      throw new Error(`${file} is not linked from docs/index.md`)
  sidebar.at(-1)?.items.push(...decisions.filter((file) => !listed.has(file)).flatMap(toItem))
  return sidebar
}
