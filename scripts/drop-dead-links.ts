/**
 * Documents in an artifact: links to files that it does not hold become plain text, and images that it does
 * not hold disappear.
 */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const link = /(!?)\[([^\]]*)\]\(([^()\s#]+)(#[^()\s]*)?\)/g

/**
 * Changes the documents of a folder and of its `docs/`. In a `flat` folder all files are side by side, so a
 * link keeps only the name of its file.
 */
export function dropDeadLinks(folder: string, { flat = false } = {}): void {
  for (const file of globSync('{,docs/}*.md', { cwd: folder })) {
    const path = join(folder, file)
    const text = readFileSync(path, 'utf8').replace(
      link,
      (whole, mark: string, label: string, target: string, anchor = '') => {
        if (/^[a-z]+:/.test(target)) return whole
        const found = flat ? basename(target) : target
        if (existsSync(join(dirname(path), found))) return `${mark}[${label}](${found}${anchor})`
        return mark === '' ? label : ''
      },
    )
    writeFileSync(path, text)
  }
}
