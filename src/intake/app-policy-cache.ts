/**
 * The policy of each key seen last. An entry may be old: the store compares its version at every
 * request, and returns the current app if it differs.
 */
import type { AppPolicy } from '../domain/app/app-policy.ts'
import type { KeyHash } from '../domain/app/delivery-key.ts'
import { LruMap } from '../domain/lru-map.ts'

const policiesKept = 10_000

export type KeyPolicy = {
  readonly policy: AppPolicy
  /** The networks from which requests may use the key; null for all. */
  readonly networks: readonly string[] | null
}

export class AppPolicyCache extends LruMap<KeyHash, KeyPolicy> {
  constructor() {
    super(policiesKept)
  }
}
