#!/usr/bin/env node
// The command. Plain JavaScript, so that a Node too old for the program can say so.
const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(`postern needs Node 24 or newer; this is ${process.version}.`)
  console.error('In a checkout, "npm ci" installs one: run "npx postern" or an npm script, which use it.')
  process.exit(1)
}
await import('../src/main.ts')
