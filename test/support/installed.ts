/** The programs of `test/needs.json`: a test that needs a missing one is skipped, with a reason. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import table from '../needs.json' with { type: 'json' }

export type Tool = keyof typeof table

/** `file` is a path, or that of a program of Debian, or one in the `node_modules` of `POSTERN_TEST_TOOLS`. */
type Need = {
  readonly debian?: string
  readonly npm?: string
  /** The tool's name, unless given. */
  readonly file?: string
  readonly root?: boolean
}
const needs: Readonly<Record<Tool, Need>> = table

/** Where a tool is, or would be. */
export function toolPath(tool: Tool): string {
  const { file = tool, npm } = needs[tool]
  if (npm !== undefined) return join(process.env.POSTERN_TEST_TOOLS ?? '', 'node_modules', file)
  const program = resolve('/usr/sbin', file)
  return existsSync(program) ? program : resolve('/usr/bin', file)
}

/** A skip reason, or false if every tool is there, and the user is root where one needs it. */
export function lacking(...tools: Tool[]): string | false {
  const absent = tools.filter((tool) => !existsSync(toolPath(tool)))
  const packages = absent.map((tool) => needs[tool].debian ?? needs[tool].npm ?? tool)
  if (absent.length > 0) return `skipped: install ${packages.join(', ')} (see CONTRIBUTING.md)`
  if (tools.some((tool) => needs[tool].root) && process.getuid?.() !== 0) return 'skipped: needs root'
  return false
}
