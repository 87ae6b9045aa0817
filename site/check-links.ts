/** Checks the built site: each internal link has its page, and each anchor its element. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const attribute = (html: string, name: string): string[] =>
  Array.from(html.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g')), ([, value = '']) => value.replaceAll('&amp;', '&'))

export function checkLinks(folder: string, base: string): { pages: number; links: number; dead: string[] } {
  const pages = globSync('**/*.html', { cwd: folder }).filter((file) => file !== '404.html')
  const htmls = new Map(pages.map((page) => [page, readFileSync(join(folder, page), 'utf8')]))
  const anchors = new Map([...htmls].map(([page, html]) => [page, new Set(attribute(html, 'id'))]))
  const dead: string[] = []
  let links = 0
  for (const [page, html] of htmls)
    for (const target of [...attribute(html, 'href'), ...attribute(html, 'src')]) {
      if (/^([a-z]+:|\/\/)/i.test(target)) continue
      links++
      const url = new URL(target, `https://site${base}${page}`)
      const path = decodeURIComponent(url.pathname).slice(base.length)
      const found = [path, `${path}.html`, `${path}index.html`].find(
        (file) => file !== '' && existsSync(join(folder, file)),
      )
      const anchor = decodeURIComponent(url.hash.slice(1))
      if (!url.pathname.startsWith(base) || found === undefined) dead.push(`${page} → ${target}`)
      else if (anchor !== '' && anchors.get(found)?.has(anchor) === false) dead.push(`${page} → ${target}`)
    }
  return { pages: pages.length, links, dead }
}
