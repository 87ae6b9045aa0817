/** Faults of the machine that no part of Postern can prevent: they are neither bugs nor about one email. */

/** By the code of the system error. */
export const lacks: Readonly<Record<string, string>> = {
  EMFILE: 'this process has no free file descriptor: raise its limit (LimitNOFILE, ulimit -n)',
  ENFILE: 'this machine has no free file descriptor: raise fs.file-max',
}

/** Null for any other error. */
export const describeLack = (error: unknown): string | null =>
  lacks[(error as { code?: string } | null)?.code ?? ''] ?? null
