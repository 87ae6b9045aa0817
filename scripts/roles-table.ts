/**
 * The verdict of every operation for every role and scope, generated from the operations. Tests hold the API,
 * the console and the command line against it, and SECURITY.md shows it.
 */
import { isAtLeast, type Role, roles } from '../src/domain/operator/management-token.ts'
import { always, never } from '../src/management/operation/operation.ts'
import { findOperation, type OperationName, operationNames } from '../src/management/operations.ts'
import { renderTable } from './table.ts'

/** An access to one app meets that app, or another one; an access to the whole service meets any. */
export const scopes = ['own app', 'another app', 'whole service'] as const
export type Scope = (typeof scopes)[number]

/** `absent`: as if there were no such thing. `left out`: done, but only with what is its own. */
export type Verdict = 'allowed' | 'forbidden' | 'absent' | 'left out'

/** Verdicts that depend on the input, so that a definition does not say them. */
const byInput: Partial<
  Record<OperationName, { readonly names?: 'app'; readonly inAll?: Role; readonly of?: 'person' }>
> = {
  'key.find': { names: 'app' },
  'suppression.add': { names: 'app' },
  'audit.list': { inAll: 'admin' },
  'account.change': { of: 'person' },
  'account.remove_passkey': { of: 'person' },
  'account.end_session': { of: 'person' },
}

/** In which cases an operation needs a fresh sign-in, if neither always nor never. */
export const freshIf: Partial<Record<OperationName, string>> = {
  'app.change': 'if mail, links or data go elsewhere, or the app is enabled',
  'key.change': 'if it makes the key last longer',
  'person.change': 'unless it only disables',
}

export function verdictOf(
  name: OperationName,
  { role, scope, isPerson }: { readonly role: Role; readonly scope: Scope; readonly isPerson: boolean },
): Verdict {
  const { role: least, target, wholeService } = findOperation(name)
  const { names, inAll = least, of } = byInput[name] ?? {}
  if (!isAtLeast(role, least)) return 'forbidden'
  if (of === 'person' && !isPerson) return 'absent'
  if (scope === 'whole service') return isAtLeast(role, inAll) ? 'allowed' : 'forbidden'
  if (wholeService) return 'forbidden'
  if (scope === 'own app') return 'allowed'
  return target !== 'none' || names !== undefined || of === 'person' ? 'absent' : 'left out'
}

const words: Readonly<Record<Verdict, string>> = {
  allowed: 'yes',
  forbidden: '403',
  absent: '404',
  'left out': 'left out',
}

/** The verdict for the least role, and from which role on it is another one. */
function describeScope(name: OperationName, scope: Scope): string {
  const { role: least } = findOperation(name)
  const cells = roles
    .filter((role) => isAtLeast(role, least))
    .map((role) => ({ role, word: words[verdictOf(name, { role, scope, isPerson: true })] }))
  const [first] = cells
  const later = cells.find(({ word }) => word !== first?.word)
  return later === undefined ? (first?.word ?? '') : `${first?.word}; ${later.role}: ${later.word}`
}

function describeFresh(name: OperationName): string {
  const { outlives } = findOperation(name)
  if (outlives === never) return 'no'
  return outlives === always ? 'yes' : (freshIf[name] ?? 'undeclared')
}

/** Operations that are alike share a row. */
export function renderRolesTable(): string {
  const rows = new Map<string, { readonly cells: readonly string[]; readonly names: OperationName[] }>()
  for (const name of operationNames) {
    const scoped = scopes.map((scope) => describeScope(name, scope))
    const cells = [findOperation(name).role, ...scoped, describeFresh(name)]
    const row = rows.get(cells.join()) ?? { cells, names: [] }
    row.names.push(name)
    rows.set(cells.join(), row)
  }
  const heads = ['operations', 'minimum role', ...scopes, 'needs a fresh sign-in']
  const lines = [...rows.values()].map(({ cells, names }) => [names.map((name) => `\`${name}\``).join(', '), ...cells])
  return renderTable(heads, lines)
}
