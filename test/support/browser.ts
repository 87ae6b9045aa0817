/** Debian's Chromium, driven by Playwright, with its background network services off. */
import { chromium } from 'playwright-core'
import { toolPath } from './installed.ts'
import { atEnd, type Scope } from './temporary.ts'

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** @param more further flags of Chromium */
export async function openBrowser(scope: Scope, more: readonly string[] = []) {
  const browser = await chromium.launch({ executablePath: toolPath('chromium'), args: [...flags, ...more] })
  atEnd(scope, () => browser.close())
  return browser
}
