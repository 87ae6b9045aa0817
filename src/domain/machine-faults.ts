/** Faults of the machine that no part of Postern can prevent: they are neither bugs nor about one email. */

/** Says what the process lacks; null for any other error. */
export function describeLack(error: unknown): string | null {
  const { code } = (error ?? {}) as { code?: unknown }
  if (code === 'EMFILE')
    return 'this process has no free file descriptor: raise its limit (LimitNOFILE, ulimit -n)'
  if (code === 'ENFILE') return 'this machine has no free file descriptor: raise fs.file-max'
  return null
}
