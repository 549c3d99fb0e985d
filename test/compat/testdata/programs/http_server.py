"""An HTTP server and a client for it on the loopback."""
import http.server
import json
import threading
import urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"sum": sum(body)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
request = urllib.request.Request("http://localhost:%d/" % server.server_port, data=b"[1, 2, 3]")
print(json.load(urllib.request.urlopen(request, timeout=10))["sum"])
server.shutdown()
