/** Beside a link that was refused: a button that allows it, and leads to the links of its app. */
import type { AppResource } from '../../../../management/resources.ts'
import type { Html } from '../../../../templates/html.ts'
import { button } from '../parts.ts'

/** @param tested the link of the tester, which is tested again */
export const allowButton = ({ slug }: AppResource, entry: string, tested?: string): Html =>
  button(`/apps/${slug}/links/add`, `Allow ${entry}`, {
    fields: { kind: 'allowedUrls', entry, ...(tested !== undefined && { url: tested }) },
    kind: 'main',
  })
