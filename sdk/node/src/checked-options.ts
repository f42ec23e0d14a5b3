/** Checks what an application passes, so that a mistake is reported where it was made. */

import { checkHostTools } from './checked-host-tools.js';
import { checkNames, isRecord, wrong, type Names } from './checks.js';
import { kindOf } from './json.js';
import type { TGPOptions } from './options.js';
import { suggestion } from './suggest.js';

const OPTIONS: Names<TGPOptions> = {
  configFile: true,
  directory: true,
  vfs: true,
  logger: true,
  logLevel: true,
  approve: true,
  consent: true,
  hostTools: true,
  sql: true,
  session: true,
  client: true,
  binary: true,
  env: true,
  bootTimeoutMs: true,
};

const CONSENTS: readonly string[] = ['rules', 'effects'];
const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'];
const TEXTS = ['configFile', 'directory', 'binary', 'session'] as const;

const LOGGER_METHODS = ['debug', 'info', 'warn', 'error'] as const;
const VFS_METHODS = ['readFile', 'writeFile', 'remove', 'exists', 'listFiles'] as const;
const VFS_OPTIONAL_METHODS = ['readBytes', 'entry', 'entries', 'apply'] as const;
/** The longest that a timer of Node can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Throws `ECONFIG` for an option that does not exist or cannot be used. */
export function checkOptions(options: TGPOptions): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw wrong(`the options of \`new TGP()\` are ${kindOf(options)}, expected an object`, 'such as `new TGP({ configFile })`');
  }
  checkNames('ECONFIG', options, Object.keys(OPTIONS), 'option', '`new TGP()`');
  for (const name of TEXTS) {
    if (options[name] !== undefined && typeof options[name] !== 'string') {
      throw wrong(`\`${name}\` is ${kindOf(options[name])}, expected a string`, `pass \`${name}\` as a string`);
    }
  }
  if (options.approve !== undefined && typeof options.approve !== 'function') {
    throw wrong(`\`approve\` is ${kindOf(options.approve)}, expected a function`, 'pass `(request) => boolean`');
  }
  if (options.consent !== undefined && !CONSENTS.includes(options.consent)) {
    throw wrong(`unknown consent \`${String(options.consent)}\``, suggestion(String(options.consent), CONSENTS));
  }
  if (options.logLevel !== undefined && !LEVELS.includes(options.logLevel)) {
    throw wrong(`unknown logLevel \`${String(options.logLevel)}\``, suggestion(String(options.logLevel), LEVELS));
  }
  const { logger, vfs, bootTimeoutMs } = options;
  if (logger !== undefined) {
    checkMethods('logger', logger, LOGGER_METHODS, [], 'such as `console`, or a logger of pino or winston');
  }
  if (vfs !== undefined) {
    const help = 'pass `createMemoryVFS()`, `createNodeVFS(directory)` or an adapter of your own';
    checkMethods('vfs', vfs, VFS_METHODS, VFS_OPTIONAL_METHODS, help);
  }
  if (bootTimeoutMs !== undefined && !(Number.isInteger(bootTimeoutMs) && bootTimeoutMs > 0 && bootTimeoutMs <= MAX_TIMER_MS)) {
    const shown = typeof bootTimeoutMs === 'number' ? bootTimeoutMs : kindOf(bootTimeoutMs);
    throw wrong(`\`bootTimeoutMs\` is ${shown}, expected a whole number of milliseconds above 0`, `at most ${MAX_TIMER_MS}`);
  }
  checkClient(options.client);
  checkEnvironment(options.env);
  checkHostTools(options.hostTools);
}

/** An object of the application with functions that the client calls. */
function checkMethods(
  option: string,
  value: unknown,
  needed: readonly string[],
  optional: readonly string[],
  help: string,
): void {
  const expected = `expected an object with ${needed.map((name) => `\`${name}\``).join(', ')}`;
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) {
    throw wrong(`\`${option}\` is ${kindOf(value)}, ${expected}`, help);
  }
  for (const name of [...needed, ...optional]) {
    const method = (value as Record<string, unknown>)[name];
    if (typeof method !== 'function' && !(method === undefined && optional.includes(name))) {
      throw wrong(`\`${option}.${name}\` is ${kindOf(method)}, expected a function`, help);
    }
  }
}

function checkClient(client: TGPOptions['client']): void {
  if (client === undefined) {
    return;
  }
  const help = "pass `{ name: 'shop', version: '1.0' }`";
  if (!isRecord(client)) {
    throw wrong(`\`client\` is ${kindOf(client)}, expected an object with \`name\` and \`version\``, help);
  }
  checkNames('ECONFIG', client, ['name', 'version'], 'field', '`client`');
  for (const name of ['name', 'version'] as const) {
    if (typeof client[name] !== 'string') {
      throw wrong(`\`client.${name}\` is ${kindOf(client[name])}, expected a string`, help);
    }
  }
}

function checkEnvironment(env: TGPOptions['env']): void {
  if (env === undefined) {
    return;
  }
  const help = "pass texts by name, such as `{ ...process.env, A: 'b' }`";
  if (!isRecord(env)) {
    throw wrong(`\`env\` is ${kindOf(env)}, expected an object`, help);
  }
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && typeof value !== 'string') {
      throw wrong(`\`env.${name}\` is ${kindOf(value)}, expected a string`, help);
    }
  }
}
