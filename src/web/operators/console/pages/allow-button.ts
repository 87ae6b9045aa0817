/** Beside a link that was refused: a button that allows it, and leads to the links of its app. */
import type { AppResource } from '../../../../management/resources.ts'
import type { Html } from '../../../../templates/html.ts'
import { button } from '../parts.ts'

export const allowButton = ({ slug }: AppResource, entry: string): Html =>
  button(`/apps/${slug}/links/add`, `Allow ${entry}`, {
    fields: { kind: 'allowedUrls', entry },
    kind: 'main',
  })
