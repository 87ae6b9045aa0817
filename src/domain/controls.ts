/**
 * Characters that change how the text around them is read: C0 and C1 controls, line and paragraph
 * separators, and those that steer the direction of text (UAX #9). No name or sender holds any.
 */
const controls = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u

export const hasControls = (text: string): boolean => controls.test(text)
