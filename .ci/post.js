// Posts one email to a Postern on this machine: node post.js KEY. Prints the status of the answer.
const answer = await fetch('http://127.0.0.1:4020/v1/email', {
  method: 'POST',
  headers: { authorization: `Bearer ${process.argv[2]}`, 'content-type': 'application/json' },
  body: JSON.stringify({
    to: `u${Date.now()}@example.com`,
    type: 'magic_link',
    url: 'https://app.acme.test/auth/verify?token=demo-1234',
    expiresAt: new Date(Date.now() + 900_000).toISOString(),
  }),
})
console.log(answer.status)
