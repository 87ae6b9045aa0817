/**
 * The policies of the apps seen last, by key. The cache is filled only by the store's own answers, and
 * a policy in it may be old: the store says so when a request that it judged arrives.
 */
import type { AppPolicy } from '../domain/app/app-policy.ts'
import type { KeyHash } from '../domain/app/delivery-key.ts'
import { LruMap } from '../domain/lru-map.ts'

const usualMax = 10_000

export class AppPolicyCache extends LruMap<KeyHash, AppPolicy> {
  constructor(max = usualMax) {
    super(max)
  }
}
