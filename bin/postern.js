#!/usr/bin/env node
// The command. Plain JavaScript, so that a Node too old for the program can say so.
import * as nodeModule from 'node:module' // an old Node lacks the export
import { fileURLToPath } from 'node:url'

const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(`postern needs Node 24 or newer; this is ${process.version}.`)
  console.error(
    'In a checkout, "npm ci" installs one: run "npx postern" or an npm script, which use it, or node_modules/.bin/node bin/postern.js.',
  )
  process.exit(1)
}
// Compiled code is cached beside the program, not in a temporary folder that others share. Where that folder
// cannot be written, nothing is cached and a start takes longer.
nodeModule.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/postern', import.meta.url)))
await import('../src/main.ts')
