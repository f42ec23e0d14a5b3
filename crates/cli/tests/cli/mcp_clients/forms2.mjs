// Forms with the official TypeScript client 2.x, which carries the question itself (protocol revision 2026-07-28).
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { forms, person } from './forms.mjs';

const REVISION = '2026-07-28';
const [kind, target, ...rest] = process.argv.slice(2);
const transport =
  kind === 'stdio'
    ? new StdioClientTransport({ command: target, args: rest, env: process.env, stderr: 'ignore' })
    : new StreamableHTTPClientTransport(new URL(target), {
        requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } },
      });
const client = new Client(
  { name: 'forms2', version: '1' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: REVISION } } },
);
client.setRequestHandler('elicitation/create', (request) => person.show(request.params));
await client.connect(transport);
assert.equal(client.getNegotiatedProtocolVersion?.() ?? REVISION, REVISION);
await forms({ call: (args) => client.callTool({ name: 'run', arguments: args }) });
await client.close();
console.log('done');
