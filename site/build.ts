/**
 * Builds the documentation site from the documents of the repository, into `.vitepress/dist/`:
 * `cd site && npm ci && npm run build`. Optional: GITHUB_REPOSITORY, where links to other files point, and
 * SITE_BASE, the path below which the site is published. Fails on a dead link or anchor.
 */
import { fileURLToPath } from 'node:url'
import { build } from 'vitepress'
import { checkLinks } from './check-links.ts'
import { writeContent } from './content.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))
writeContent(`${folder}.content`)
await build(folder)
const { dead, links, pages } = checkLinks(`${folder}.vitepress/dist`, process.env.SITE_BASE ?? '/')
for (const link of dead) console.error(`dead: ${link}`)
console.log(`${pages} pages, ${links} internal links, ${dead.length} dead`)
process.exitCode = dead.length > 0 ? 1 : 0
