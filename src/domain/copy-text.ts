/** A text by itself: one that was joined or cut keeps the whole texts that it came from in memory. */
export const copyText = (text: string): string => Buffer.from(text).toString()
