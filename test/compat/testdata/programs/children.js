// child_process: exec, spawn with a pipe, and the code a child exits with.
const { execFileSync, spawn } = require('node:child_process')

const word = execFileSync('tr', ['a-z', 'A-Z'], { input: 'word' }).toString()
const child = spawn('sh', ['-c', 'cat; exit 3'])
let out = ''
child.stdout.on('data', (d) => { out += d })
child.on('close', (code) => console.log(word, out, code))
child.stdin.end('piped')
