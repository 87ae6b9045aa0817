/** Small faults that somebody might make in a source file: each replaces one piece of its text. */
import { stripTypeScriptTypes } from 'node:module'
import { type Node, parse } from 'acorn'

export type Fault = {
  readonly kind: string
  /** Offsets of the text that is replaced. */
  readonly start: number
  readonly end: number
  readonly replacement: string
}

type Walked = Node & Readonly<Record<string, unknown>>

const isNode = (value: unknown): value is Walked =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

const childrenOf = (node: Walked): Walked[] =>
  Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode))

const opposites: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
}

/** Calls that leave something out, or put it in order. */
const narrowing = ['filter', 'slice', 'toSorted', 'trim', 'toLowerCase', 'flatMap', 'reverse']

/** A fault in the domain, where numbers are the contract. Elsewhere most are timeouts and sizes. */
const numberChanged = 'number changed'

/** Conditions of SQL that stand on a line of their own, or follow another one. */
const conditions = /\s(?:and|or) [^\n]*?(?=\s(?:and|or|order|limit|group|returning|union)\b|[\n`)]|$)/g

/** All faults of a TypeScript or SQL file. */
export function faultsOf(file: string, text: string): Fault[] {
  if (file.endsWith('.sql')) return sqlFaults(text, 0)
  // Types become spaces, so the offsets stay.
  const program = parse(stripTypeScriptTypes(text), { ecmaVersion: 'latest', sourceType: 'module' })
  const faults: Fault[] = []
  const isOfContract = file.startsWith('src/domain/')
  const visit = (node: Walked): void => {
    faults.push(...faultsAt(node, text).filter(({ kind }) => isOfContract || kind !== numberChanged))
    for (const child of childrenOf(node)) visit(child)
  }
  if (isNode(program)) visit(program)
  return faults
}

function sqlFaults(given: string, offset: number): Fault[] {
  const text = given.replace(/^--.*/gm, (comment) => ' '.repeat(comment.length))
  const dropped = [...text.matchAll(conditions)].map(({ 0: found, index }) => ({
    kind: 'SQL condition dropped',
    start: offset + index,
    end: offset + index + found.length,
    replacement: '',
  }))
  const bounds = [...text.matchAll(/ (<=|>=|<|>) /g)].map(({ 1: sign = '', index }) => ({
    kind: 'SQL bound changed',
    start: offset + index + 1,
    end: offset + index + 1 + sign.length,
    replacement: opposites[sign] ?? sign,
  }))
  return [...dropped, ...bounds]
}

function faultsAt(node: Walked, text: string): Fault[] {
  const { type } = node
  const textOf = ({ start, end }: Walked) => text.slice(start, end)
  const replace = (kind: string, replacement: string, { start, end } = node): Fault => ({
    ...{ kind, start, end, replacement },
  })
  const [left, right] = [node.left, node.right].filter(isNode)
  const operator = String(node.operator ?? '')
  switch (type) {
    case 'BlockStatement':
    case 'Program':
      return statementFaults((node.body as Walked[]).filter(isNode), text)
    case 'IfStatement':
    case 'ConditionalExpression':
      return isNode(node.test) ? [replace('condition inverted', `!(${textOf(node.test)})`, node.test)] : []
    case 'LogicalExpression':
      if (!left || !right) return []
      return [left, right].map((kept) => replace(`weakened: ${operator}`, `(${textOf(kept)})`))
    case 'BinaryExpression':
      if (!left || !right) return []
      if (operator === '*' || operator === '/') return [replace('unit dropped', textOf(left))]
      if (opposites[operator] === undefined) return []
      return [replace('bound changed', `${textOf(left)} ${opposites[operator]} ${textOf(right)}`)]
    case 'AwaitExpression':
      return isNode(node.argument) ? [replace('await dropped', textOf(node.argument))] : []
    case 'CallExpression':
      return callFaults(node, text)
    case 'Literal':
      if (typeof node.value === 'boolean') return [replace('truth inverted', String(!node.value))]
      return typeof node.value === 'number' && node.value > 1
        ? [replace(numberChanged, `(${textOf(node)} * 2)`)]
        : []
    case 'TemplateElement':
      return /\b(select|update|delete|insert)\b/.test(textOf(node)) ? sqlFaults(textOf(node), node.start) : []
    default:
      return []
  }
}

function callFaults(node: Walked, text: string): Fault[] {
  const callee = node.callee
  if (!isNode(callee) || callee.type !== 'MemberExpression' || !isNode(callee.object)) return []
  const name = isNode(callee.property) ? text.slice(callee.property.start, callee.property.end) : ''
  if (!narrowing.includes(name)) return []
  const replacement = text.slice(callee.object.start, callee.object.end)
  return [{ kind: `.${name} dropped`, start: node.start, end: node.end, replacement }]
}

const acts = [
  'CallExpression',
  'AwaitExpression',
  'AssignmentExpression',
  'UpdateExpression',
  'YieldExpression',
]

function statementFaults(statements: readonly Walked[], text: string): Fault[] {
  const isAct = (statement: Walked | undefined): statement is Walked =>
    statement?.type === 'ExpressionStatement' &&
    isNode(statement.expression) &&
    acts.includes(statement.expression.type)
  const isEarlyEnd = ({ type, alternate }: Walked) => type === 'IfStatement' && !isNode(alternate)
  return statements.flatMap((statement, index) => {
    const { start, end } = statement
    const next = statements[index + 1]
    const faults: Fault[] = []
    if (isAct(statement) || isEarlyEnd(statement))
      faults.push({ kind: 'statement dropped', start, end, replacement: ';' })
    if (isAct(statement) && isAct(next)) {
      const [one, two] = [text.slice(start, end), text.slice(next.start, next.end)]
      if (/=>|function/.test(one + two)) return faults // handlers are registered in any order
      faults.push({ kind: 'statements swapped', start, end: next.end, replacement: `${two}\n${one}` })
    }
    return faults
  })
}
