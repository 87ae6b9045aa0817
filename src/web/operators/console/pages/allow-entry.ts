/** An entry of an allow-list: how people type it, and the button that allows it. */
import type { AppResource } from '../../../../management/resources.ts'
import type { Html } from '../../../../templates/html.ts'
import { button } from '../parts.ts'

/** @param tested the link of the tester, which is tested again */
export const allowButton = ({ slug }: AppResource, entry: string, tested?: string, kind: '' | 'main' = 'main'): Html =>
  button(`/apps/${slug}/links/add`, `Allow ${entry}`, {
    fields: { kind: 'allowedUrls', entry, ...(tested !== undefined && { url: tested }) },
    kind,
  })

/** People type a host alone; it means its https site. */
export const withScheme = (entry: string): string =>
  /^[a-z0-9*-]{1,63}(?:\.[a-z0-9-]{1,63}){1,10}(?:[:/]|$)/i.test(entry) ? `https://${entry}` : entry
