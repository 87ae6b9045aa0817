/** A plugin of Stryker: sentences for people are not mutated, because no test should pin their words. */
type Literal = {
  readonly type: string
  readonly value?: unknown
  readonly quasis?: readonly { readonly value: { readonly cooked?: string } }[]
}

function textOf({ type, value, quasis }: Literal): string {
  if (type === 'StringLiteral') return String(value)
  return type === 'TemplateLiteral' ? (quasis ?? []).map((part) => part.value.cooked).join('*') : ''
}

/** A text with a space that ends like a sentence. Codes, field names and alphabets are mutated. */
const isSentence = (node: Literal): boolean => / .*[.…:]$/s.test(textOf(node))

export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'sentences',
    value: {
      shouldIgnore: ({ node }: { node: Literal }) => (isSentence(node) ? 'a sentence for people' : undefined),
    },
  },
]
