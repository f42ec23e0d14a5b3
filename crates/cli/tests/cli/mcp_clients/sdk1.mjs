// The official TypeScript SDK 1.x: over stdio (`node sdk1.mjs stdio TGP…`) and over HTTP (`node sdk1.mjs http URL TOKEN`).
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { steps } from './steps.mjs';

const [kind, target, ...rest] = process.argv.slice(2);
const transport =
  kind === 'stdio'
    ? new StdioClientTransport({ command: target, args: rest, env: process.env, stderr: 'ignore' })
    : new StreamableHTTPClientTransport(new URL(target), {
        requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } },
      });
const client = new Client({ name: 'sdk1', version: '1' });
await client.connect(transport);
await steps({
  client,
  callOnce: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
});
await client.close();
console.log('done');
