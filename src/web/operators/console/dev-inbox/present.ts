/** The search of the dev inbox. */
import type { CapturedEmail } from '../../../../delivery/relay/capture-relay.ts'

/** Whether a part of the recipient, subject, app or type is the text. */
export const matchesText = ({ to, subject, app, type }: CapturedEmail, text: string): boolean =>
  [to, subject, app, type].some((part) => part.toLowerCase().includes(text.trim().toLowerCase()))
