// The conformance suite sends no token: this proxy adds it. `node token_proxy.mjs TARGET_PORT TOKEN` prints its own port.
import http from 'node:http';

const [port, token] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const { host, origin, ...headers } = request.headers;
  // What the suite says about the host and the origin is passed on, for the checks of the server.
  const own = host === `127.0.0.1:${server.address().port}` || host === `localhost:${server.address().port}`;
  const forwarded = http.request(
    {
      host: '127.0.0.1',
      port,
      path: request.url,
      method: request.method,
      headers: {
        ...headers,
        ...(origin && { origin: origin.replace(`:${server.address().port}`, `:${port}`) }),
        host: own ? `127.0.0.1:${port}` : host,
        authorization: `Bearer ${token}`,
      },
    },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    },
  );
  forwarded.on('error', () => response.destroy());
  response.on('close', () => forwarded.destroy());
  request.pipe(forwarded);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
