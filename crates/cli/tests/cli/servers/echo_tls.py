"""An HTTPS server that answers with the request it got, and redirects from /v1/away to the port that is named."""
import http.server
import ssl
import sys

certificate, key = sys.argv[1:3]


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/v1/away"):
            self.send_response(302)
            self.send_header("Location", "https://localhost:%s/v1/end" % self.path.rsplit("/", 1)[1])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = ("%s\n%s" % (self.path, self.headers)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        print("saw", self.headers.get("Authorization", "-"), self.path, flush=True)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("port", server.server_address[1], flush=True)
server.serve_forever()
