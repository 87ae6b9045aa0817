/** A sender as the JSON of a mail API holds it: `"Acme, Inc." <auth@acme.com>`, in Unicode. */
export const formatMailbox = ({
  name,
  address,
}: {
  readonly name: string
  readonly address: string
}): string => `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
