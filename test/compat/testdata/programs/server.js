// An HTTP server and fetch on the loopback.
const http = require('node:http')

const server = http.createServer((req, res) => res.end(req.url.toUpperCase()))
server.listen(0, 'localhost', async () => {
  const { port } = server.address()
  console.log(await (await fetch(`http://localhost:${port}/path`)).text())
  server.close()
  server.closeAllConnections()
})
