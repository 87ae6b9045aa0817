import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'
import { anchorRows } from '../anchor-rows.ts'

const repository = process.env.GITHUB_REPOSITORY

export default defineConfig({
  title: 'Postern',
  description: 'Sends the emails people sign in with, and never after their link has expired.',
  lang: 'en',
  base: process.env.SITE_BASE ?? '/',
  srcDir: '.content',
  cleanUrls: true,
  ignoreDeadLinks: 'localhostLinks', // the samples' own
  markdown: {
    // As the hosts of repositories make them, so that a link works in both places.
    anchor: {
      slugify: (title) =>
        title
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
          .replaceAll(/\s/g, '-'),
    },
    config: (markdown) => markdown.use(anchorRows),
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: JSON.parse(readFileSync(new URL('../.content/sidebar.json', import.meta.url), 'utf8')),
    ...(repository !== undefined && {
      socialLinks: [{ icon: 'github' as const, link: `https://github.com/${repository}` }],
    }),
  },
})
