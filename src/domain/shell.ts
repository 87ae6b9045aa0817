/** Commands that Postern shows for people to copy. */

/** The text as one word of a POSIX shell, whatever it holds. */
export const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
