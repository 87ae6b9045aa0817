// A relay for the tests of the packages, where nothing but Node is: takes every message, and prints a line for each.
import { createServer } from 'node:net'

createServer((socket) => {
  let inMessage = false
  let rest = ''
  socket.on('error', () => {})
  socket.write('220 sink\r\n')
  socket.on('data', (chunk) => {
    const lines = (rest + chunk).split('\r\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (inMessage) {
        if (line !== '.') continue
        inMessage = false
        console.log('taken')
        socket.write('250 ok\r\n')
      } else if (/^DATA/i.test(line)) {
        inMessage = true
        socket.write('354 go on\r\n')
      } else if (/^QUIT/i.test(line)) socket.end('221 bye\r\n')
      else socket.write('250 ok\r\n')
    }
  })
}).listen(2525, '127.0.0.1', () => console.log('listening'))
