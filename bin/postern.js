#!/usr/bin/env -S node --
// The command, of a checkout (TypeScript) and of the built package. Plain JavaScript, so that a Node too old for
// the program can say so. The two hyphens keep Node from looking for the file of --env-file itself.
import { existsSync } from 'node:fs'
import * as nodeModule from 'node:module' // an old Node lacks the export
import { fileURLToPath } from 'node:url'

const source = new URL('../src/main.ts', import.meta.url)
const isCheckout = existsSync(source)

const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(`postern needs Node 24 or newer; this is ${process.version} (${process.execPath}).`)
  console.error(
    isCheckout
      ? 'In a checkout, "npm ci" (without --omit) installs one: run "npx postern" or an npm script, which use it, or node_modules/.bin/node bin/postern.js.'
      : 'Install a newer Node; the container image, the Debian package and the tarball bring their own.',
  )
  process.exit(1)
}
// By Node's own handling, SIGUSR1 opens its debugger to every user of this machine. Log rotation sends
// these two to services: there is nothing to reopen.
for (const signal of ['SIGUSR1', 'SIGUSR2']) process.on(signal, () => {})
process.umask(0o077) // databases, backups, keys and cached code are their owner's alone
// Compiled code is cached beside the program, not in a temporary folder that others share. Where that folder
// cannot be written, nothing is cached and a start takes longer.
nodeModule.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/postern', import.meta.url)))
await import(isCheckout ? source.href : '../src/main.js')
