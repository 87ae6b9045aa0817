/** Lists the SQL of source files: the literals of all declarations that some of them use, at any depth. */
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { type Node, parse } from 'acorn'

/** A string or a template that begins as a statement does. `parts`: the text around what it inserts. */
export type SqlLiteral = {
  readonly file: string
  readonly line: number
  readonly parts: readonly string[]
}

type Walked = Node & Readonly<Record<string, unknown>>

const isNode = (value: unknown): value is Walked =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

/** Without the names of properties, which refer to no declaration. */
const childrenOf = (node: Walked): Walked[] =>
  Object.entries(node).flatMap(([name, value]) => {
    const isName = (node.type === 'MemberExpression' && name === 'property') || name === 'key'
    if (isName && node.computed !== true) return []
    return (Array.isArray(value) ? value : [value]).filter(isNode)
  })

const nameOf = (node: unknown): string => (isNode(node) ? String(node.name ?? node.value) : '')

type Import = { readonly file: string; readonly name: string }

type Module = {
  readonly text: string
  readonly declarations: ReadonlyMap<string, Walked>
  readonly imports: ReadonlyMap<string, Import>
}

function readModule(file: string): Module {
  const text = readFileSync(file, 'utf8')
  const stripped = stripTypeScriptTypes(text) // types become spaces, so the lines stay
  const program = parse(stripped, { ecmaVersion: 'latest', sourceType: 'module' }) as Node as Walked
  const declarations = new Map<string, Walked>()
  const imports = new Map<string, Import>()
  for (const statement of childrenOf(program)) {
    if (statement.type === 'ImportDeclaration') {
      const source = nameOf(statement.source)
      if (!source.startsWith('.')) continue
      for (const { imported, local } of statement.specifiers as Walked[])
        imports.set(nameOf(local), { file: join(dirname(file), source), name: nameOf(imported) })
      continue
    }
    const declaration = isNode(statement.declaration) ? statement.declaration : statement
    if (declaration.type !== 'VariableDeclaration') declarations.set(nameOf(declaration.id), declaration)
    else for (const declared of declaration.declarations as Walked[]) declarations.set(nameOf(declared.id), declared)
  }
  return { text, declarations, imports }
}

const startsStatement = /^\s*(select|insert|update|delete|replace|with)\s/

function toLiteral(node: Walked, file: string, { text }: Module): SqlLiteral[] {
  const parts =
    node.type === 'TemplateLiteral'
      ? (node.quasis as Walked[]).map(({ value }) => (value as { cooked: string }).cooked)
      : node.type === 'Literal' && typeof node.value === 'string'
        ? [node.value]
        : []
  if (!startsStatement.test(parts[0] ?? '')) return []
  return [{ file, line: text.slice(0, node.start).split('\n').length, parts }]
}

/** @param roots declarations, each by its file and its name */
export function listSql(roots: readonly Import[]): SqlLiteral[] {
  const modules = new Map<string, Module>()
  const found: SqlLiteral[] = []
  const seen = new Set<Walked>()
  const reach = ({ file, name }: Import): void => {
    const module = modules.get(file) ?? readModule(file)
    modules.set(file, module)
    const imported = module.imports.get(name)
    const declaration = module.declarations.get(name)
    if (imported !== undefined) reach(imported)
    else if (declaration !== undefined) visit(declaration, file, module)
  }
  const visit = (node: Walked, file: string, module: Module): void => {
    if (seen.has(node)) return
    seen.add(node)
    found.push(...toLiteral(node, file, module))
    if (node.type === 'Identifier') reach({ file, name: nameOf(node) })
    for (const child of childrenOf(node)) visit(child, file, module)
  }
  for (const root of roots) reach(root)
  return found
}

/** With placeholders as SQLite has them. */
const plain = (text: string): string => text.replace(/\$(?=\d)/g, '?')

/**
 * Whether a statement is made of this literal: it begins with it, or has it as a subquery, and nothing
 * follows that the literal does not have.
 */
export function isMadeOf(text: string, { parts }: SqlLiteral): boolean {
  const escaped = parts.map((part) => plain(part).replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`(?:^|\\()${escaped.join('[^]*?')}\\s*(?:$|\\))`).test(plain(text))
}
