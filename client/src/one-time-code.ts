/** Whether the service takes a token for a code: another one would be refused. */
export const isCode = (token: string): boolean =>
  /^\d{4,10}$/.test(token) || (/^(?=.{4,12}$)[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*$/.test(token) && /[A-Za-z]/.test(token))
