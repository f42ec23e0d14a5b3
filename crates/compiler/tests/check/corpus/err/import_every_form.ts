import net = require('net');
export { readFile } from 'fs/promises';
export * from 'os';
export * as path from 'path';
const http = require('http');
const lazy = await import('https');

/** Every way to import. */
export default () => [net, http, lazy];
