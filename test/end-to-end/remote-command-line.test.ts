/**
 * The suites of the command line once more, with every command run by the management API
 * (`test/support/cli.ts`).
 */
process.env.POSTERN_TEST_VIA_API = 'yes'
await import('./command-line.test.ts')
await import('./operator.test.ts')
await import('./check-link.test.ts')
await import('./management-command-line.test.ts')
