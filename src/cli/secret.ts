/** `postern secret new`: a key for the key ring. */
import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import type { CliDeps } from './context.ts'
import { print } from './output.ts'

export function addSecretCommands(program: Command, deps: CliDeps): void {
  program
    .command('secret')
    .description('keys for the key ring')
    .command('new')
    .description(
      'print a new key; set the whole line as POSTERN_SECRET_KEYS, or put it before the older keys',
    )
    .option('--id <id>', 'the id of the key in the ring (usually the date and six letters)')
    .action(({ id = defaultId() }: { id?: string }) => {
      const key = newSecretKey(id)
      print(deps.output, { id, key }, () => key)
    })
}

/** The day, and a few letters so that two keys of one day can stand in one ring. */
const defaultId = (): string =>
  `k${new Date().toISOString().slice(0, 10).replaceAll('-', '')}-${randomBytes(3).toString('hex')}`
