/** An anchor for each variable, command, error and metric: the code in the first cell of a row. */
import type { MarkdownRenderer } from 'vitepress'

export function anchorRows(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('anchor_rows', ({ tokens }) => {
    const used = new Set<string>()
    for (const [index, token] of tokens.entries()) {
      const isFirst = token.type === 'td_open' && tokens[index - 1]?.type === 'tr_open'
      if (!isFirst) continue
      for (const part of tokens[index + 1]?.children ?? []) {
        if (part.type !== 'code_inline') continue
        // `app create <name>` becomes app-create.
        const anchor = part.content
          .replace(/ [<[].*$/, '')
          .replaceAll(/[^\w]+/g, '-')
          .replaceAll(/^-|-$/g, '')
        if (anchor !== '' && !used.has(anchor)) part.attrSet('id', anchor)
        used.add(anchor)
      }
    }
  })
}
