/**
 * Mail of test keys is in the log, and is not counted. Its webhooks and lost leases are: they are about the
 * app's receiver and about workers.
 */
import { isTestSide } from '../domain/app/test-side.ts'
import type { PosternEvent } from './events.ts'

/** The part of an event that is about real mail; null for none. */
export function ofRealMail(event: PosternEvent): PosternEvent | null {
  if (event.kind === 'emails_ended') {
    const ended = event.ended.filter(({ appId }) => !isTestSide(appId))
    return ended.length === 0 ? null : { ...event, ended }
  }
  return 'appId' in event && event.appId !== null && isTestSide(event.appId) ? null : event
}
