/**
 * Characters that change how the surrounding text is read: C0 and C1 controls, line and paragraph
 * separators, and text direction controls (UAX #9). Names and senders must not contain them.
 */
const controls = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u

export const hasControls = (text: string): boolean => controls.test(text)
