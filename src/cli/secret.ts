/** `postern secret new`: a key for the key ring. */
import { randomBytes } from 'node:crypto'
import { newSecretKey } from '../store/crypto/key-ring.ts'
import { type CommandGroup, type CommandSpec, option } from './command.ts'
import { print } from './output.ts'

const create: CommandSpec = {
  use: 'new',
  about: 'print a new key; set the whole line as POSTERN_SECRET_KEYS, or put it before the older keys',
  options: [option('--id <id>', 'the id of the key in the ring (usually the date and six letters)')],
  examples: ['postern secret new > keys && chmod 600 keys'],
  act({ output }, _, { id = defaultId() }: { id?: string }) {
    const key = newSecretKey(id)
    print(output, { id, key }, () => key)
  },
}

export const secretCommands: CommandGroup = {
  name: 'secret',
  about: 'keys for the key ring',
  commands: [create],
}

/** The day, and a few letters so that two keys of one day can stand in one ring. */
const defaultId = (): string =>
  `k${new Date().toISOString().slice(0, 10).replaceAll('-', '')}-${randomBytes(3).toString('hex')}`
