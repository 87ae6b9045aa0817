/** Replies of an SMTP server (RFC 5321 §4.2) from the bytes of its connection. */

/** A longer reply is no reply: a server that never ends one must not fill the memory. */
const replyMax = 65_536

const lineShape = /^\d{3}(?:([ -])|$)/

export class ReplyReader {
  #rest = ''
  #reply = ''

  /**
   * Adds the replies that are complete after `chunk` to `replies`, the lines of each joined by line feeds.
   * Returns what is wrong if the bytes after them are no reply, or one that is too long; else null.
   */
  read(chunk: Buffer, replies: string[]): string | null {
    const lines = (this.#rest + chunk.toString('latin1')).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const text = line.endsWith('\r') ? line.slice(0, -1) : line
      if (text === '' && this.#reply === '') continue // some servers send empty lines between replies
      const shape = lineShape.exec(text)
      if (shape === null && this.#reply === '') return 'the relay sent something that is no SMTP reply'
      this.#reply += this.#reply === '' ? text : `\n${text}`
      if (this.#isTooLong()) return tooLong
      if (shape === null || shape[1] === '-') continue // a line of a reply without its code is still its text
      replies.push(decode(this.#reply))
      this.#reply = ''
    }
    return this.#isTooLong() ? tooLong : null
  }

  #isTooLong(): boolean {
    return this.#reply.length + this.#rest.length > replyMax
  }
}

const tooLong = 'the relay sent a reply without end'

/** Replies are ASCII or, in practice, UTF-8. */
const decode = (latin1: string): string =>
  /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, 'latin1').toString('utf8') : latin1
