/** An anchor for each row of a table that begins with code: a variable, a command, an error, a metric. */
import type { MarkdownRenderer } from 'vitepress'

export function anchorRows(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('anchor_rows', ({ tokens }) => {
    const used = new Set<string>()
    for (const [index, token] of tokens.entries()) {
      const isFirst = token.type === 'td_open' && tokens[index - 1]?.type === 'tr_open'
      if (!isFirst) continue
      for (const { content, type } of tokens[index + 1]?.children ?? []) {
        if (type !== 'code_inline') continue
        // `app create <name>` becomes app-create.
        const anchor = content
          .replace(/ [<[].*$/, '')
          .replaceAll(/[^\w]+/g, '-')
          .replaceAll(/^-|-$/g, '')
        if (anchor !== '' && !used.has(anchor)) token.attrSet('id', anchor)
        used.add(anchor)
        break
      }
    }
  })
}
