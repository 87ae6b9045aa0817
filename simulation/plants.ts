/**
 * Faults in the code of Postern, to see that the rules notice them. Any change of the code changes what
 * happens in a run, so a few runs are played, from `seed` on, until one notices it.
 */
import type { Plant } from './episode.ts'

type Planted = { readonly seed: number; readonly days: number; readonly plant: Plant }

/** By the word with which the violation begins. */
export const plants: Readonly<Record<string, Planted>> = {
  durable: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/store/sqlite/queue/enqueue.ts',
      find: '  insert(tx, caller, email, names.recipient)\n  tx.changeDepth(1)',
      replace: '  if (tx.nowMs % 5 > 0) { insert(tx, caller, email, names.recipient)\n  tx.changeDepth(1) }',
    },
  },
  idempotency: {
    seed: 1,
    days: 4,
    plant: { file: 'src/store/sqlite/queue/enqueue.ts', find: 'if (replay !== null) return replay', replace: '' },
  },
  limits: {
    seed: 7,
    days: 2,
    plant: {
      file: 'src/store/sqlite/queue/enqueue.ts',
      find: "if (recipientHit !== null) return refuseLimit(tx, caller, 'recipient_rate_limited', recipientHit)",
      replace: '',
    },
  },
  expiry: {
    seed: 4,
    days: 4,
    plant: { file: 'src/store/shared/rows.ts', find: 'lifeLeftMs: ', replace: 'lifeLeftMs: 600_000 + ' },
  },
  lease: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/store/sqlite/queue/claim.ts',
      find: '.all(tx.nowMs, tx.nowMs + 2 * leaseMs, stepMax)',
      replace: '.all(tx.nowMs + leaseMs, tx.nowMs + 2 * leaseMs, stepMax)',
    },
  },
  cancelled: {
    seed: 1940,
    days: 2,
    plant: {
      file: 'src/store/sqlite/queue/change-email.ts',
      find: "finish(tx, row, { state: 'cancelled', reason: 'by_operator', record: null })",
      replace: 'void finish',
    },
  },
  counts: {
    seed: 3,
    days: 4,
    plant: {
      file: 'src/store/sqlite/queue/outcome.ts',
      find: '  tx.changeDepth(-1)\n',
      replace: "  if (end.state !== 'expired') tx.changeDepth(-1)\n",
    },
  },
  once: {
    seed: 3,
    days: 4,
    plant: {
      file: 'src/store/sqlite/queue/outcome.ts',
      find: '  keepRecord(tx, row, end)\n  return { emailId',
      replace: "  if (end.state !== 'expired') keepRecord(tx, row, end)\n  else tx.changeDepth(-1)\n  return { emailId",
    },
  },
  record: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/delivery/deliver.ts',
      find: "if (failureClass.permanent) return { kind: 'failed', reason: 'refused_by_relay', relay: name, reply }",
      replace: "if (failureClass.permanent) return { kind: 'delivered', relay: name, reply }",
    },
  },
  delivery: {
    seed: 3,
    days: 2,
    plant: {
      file: 'src/store/sqlite/queue/claim.ts',
      find: 'if (next === null && wrapped) break',
      replace: 'if (next === null) break',
    },
  },
  access: {
    seed: 100,
    days: 10,
    plant: {
      file: 'src/store/sqlite/queue/enqueue.ts',
      find: 'return hasEnded(key, tx.nowMs) ? null : key',
      replace: 'return key',
    },
  },
  sealed: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/store/scripts/webhooks.ts',
      find: "const forgets = ended && receiver !== 'fails'",
      replace: 'const forgets = false',
    },
  },
  copies: {
    seed: 2,
    days: 4,
    plant: {
      file: 'src/delivery/deliver.ts',
      find: "      return { kind: 'delivered', relay: name, reply: submission.reply }",
      replace:
        "      return attempt.claim.ageMs < 3000 ? { kind: 'delivered', relay: name, reply: submission.reply } : defer(deps, attempt, { relay: name, reply: submission.reply, ambiguous: true, isSoon: false })",
    },
  },
  superseded: {
    seed: 4,
    days: 2,
    plant: {
      file: 'src/store/shared/recent-emails.ts',
      find: 'address} $',
      replace: 'address.length} $',
    },
  },
  content: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/delivery/message/compose-message.ts',
      find: "['Content-Language', language]",
      replace: "['Content-Language', 'en']",
    },
  },
  connections: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/delivery/relay/breaker.ts',
      find: 'if (!this.open) return this.#connections',
      replace: 'if (!this.open) return this.#connections + 3',
    },
  },
  suppressed: {
    seed: 1,
    days: 8,
    plant: {
      file: 'src/store/sqlite/queue/enqueue.ts',
      find: 'if (reason !== null) {',
      replace: 'if (reason !== null && reason !== "operator") {',
    },
  },
  answers: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/store/sqlite/queue/enqueue.ts',
      find: 'const dayFull = tx',
      replace: 'const dayFull = tx.nowMs % 40 === 0 || tx',
    },
  },
  fairness: {
    seed: 1,
    days: 8,
    plant: {
      file: 'src/store/sqlite/queue/claim.ts',
      find: 'turns.note(transport, last ?? seen.cutAt ?? after, isFruitless)',
      replace: 'turns.note(transport, last === null ? (seen.cutAt ?? after) : after, isFruitless)',
    },
  },
  drain: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/store/scripts/webhooks.ts',
      find: 'where app_id = $1 and (due_at <= $2 or due_at > $3)',
      replace: 'where app_id = $1 and (due_at <= $2 - 86400000 or due_at > $3)',
    },
  },
  retries: {
    seed: 1,
    days: 8,
    plant: {
      file: 'src/domain/delivery/retry-schedule.ts',
      find: 'Math.min(jittered, email.lifeLeftMs / 2)',
      replace: 'email.lifeLeftMs / 2',
    },
  },
  webhooks: {
    seed: 1,
    days: 4,
    plant: {
      file: 'src/delivery/webhooks/webhook-writer.ts',
      find: 'if (this.#adding.size >= addingMax) return',
      replace: "if (event === 'email.failed') return",
    },
  },
}
