// A forked process, and messages both ways.
const { fork } = require('node:child_process')

if (process.argv[2] === 'child') {
  process.on('message', (n) => { process.send(n * 2); process.disconnect() })
} else {
  const child = fork(__filename, ['child'])
  child.on('message', (n) => console.log(n))
  child.send(21)
}
