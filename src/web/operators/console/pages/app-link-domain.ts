/** The domain at which the pages of an app's hosted links are: an admin of the whole service sets it. */
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { type Fields, newForm } from '../form.ts'
import { button, facts, section } from '../parts.ts'
import type { Visit } from '../visit.ts'
import { showAgain, versionField } from './change.ts'

const linkDomainForm = newForm('link-domain', {
  linkDomain: {
    label: 'Link domain',
    attributes: html`spellcheck="false" autocomplete="off" placeholder="links.acme.example"`,
    hint: 'Its DNS must point to the proxy in front of Postern, and the proxy needs a certificate for it.',
  },
  useLinkDomain: {
    label: 'New hosted links',
    choices: [
      ['no', 'at the address of the service'],
      ['yes', 'at the link domain'],
    ],
  },
})

const savedFields = ({ linkDomain, useLinkDomain }: AppResource): Fields => ({
  linkDomain: linkDomain ?? '',
  useLinkDomain: useLinkDomain ? 'yes' : 'no',
})

/** @param given what was sent with a change that was refused */
export function renderLinkDomain(
  visit: Visit,
  app: AppResource,
  { given, refused }: { given: URLSearchParams; refused: OperationError | null },
): Html {
  const { linkDomain, slug, useLinkDomain } = app
  const about = html`<p class="soft">These pages can be served at a domain of the app’s own. Save the domain, check it, and then use it for new links. Links that were sent before keep working.</p>`
  const check =
    linkDomain === undefined || !visit.may('operator') ? none : button(`/apps/${slug}/domain/check`, 'Check the domain')
  if (!visit.may('admin') || !visit.seesAll) {
    const shown = facts([
      ['Link domain', linkDomain ?? 'none'],
      ...(useLinkDomain ? [['New links', 'at the link domain'] as const] : []),
    ])
    return section(
      'Link domain',
      html`${about}${shown}<p class="soft">An admin of the whole service sets it.</p>${check}`,
    )
  }
  const { fields, error } = showAgain(savedFields(app), given, refused)
  const { field, problem } = linkDomainForm.show(fields, error)
  return section(
    'Link domain',
    html`${about}${problem}<form method="post" action="/apps/${slug}/hosted-links/domain" class="stack">${versionField(app, given, error)}
${field('linkDomain')}${field('useLinkDomain')}
<div class="actions"><button>Save the link domain</button></div></form>${check}`,
  )
}
