// The official TypeScript client 2.x, in the same two ways.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { steps } from './steps.mjs';

const [kind, target, ...rest] = process.argv.slice(2);
const transport =
  kind === 'stdio'
    ? new StdioClientTransport({ command: target, args: rest, env: process.env, stderr: 'ignore' })
    : new StreamableHTTPClientTransport(new URL(target), {
        requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } },
      });
const client = new Client({ name: 'sdk2', version: '1' });
await client.connect(transport);
await steps({ client, callOnce: (name, args, options) => client.callTool({ name, arguments: args }, options) });
await client.close();
console.log('done');
