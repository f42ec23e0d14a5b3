/** Checks what an application passes, so that a mistake is reported where it was made. */

import { TGPError, type TGPErrorCode } from './errors.js';
import { checkJson, kindOf } from './json.js';
import type { HostTools, TGPOptions } from './options.js';
import { suggestion } from './suggest.js';

/** The compiler checks that these are all of them. */
type Names<T> = Record<keyof T, true>;

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

const HOST_TOOL_FIELDS: Names<HostTools[string][string]> = {
  description: true,
  input: true,
  output: true,
  effect: true,
  execute: true,
};

const CONSENTS: readonly string[] = ['rules', 'effects'];
const EFFECTS: readonly string[] = ['read', 'write', 'execute', 'network'];
const TEXTS = ['configFile', 'directory', 'binary', 'session'] as const;

/** As the kernel takes them. */
const MODULE = /^[a-z][a-z0-9-]{0,39}$/;
const FUNCTION = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

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
  checkHostTools(options.hostTools);
}

/** Throws for a name that is not known: a misspelled option would be ignored. */
export function checkNames(
  code: TGPErrorCode,
  given: object,
  known: readonly string[],
  kind: string,
  place: string,
): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) {
      throw new TGPError(code, `unknown ${kind} \`${name}\` of ${place}`, { help: suggestion(name, known), field: name });
    }
  }
}

function checkHostTools(hostTools: HostTools | undefined): void {
  if (hostTools === undefined) {
    return;
  }
  const example = 'write `hostTools: { mail: { send: { description, input, execute } } }`';
  if (!isRecord(hostTools)) {
    throw wrong(`\`hostTools\` is ${kindOf(hostTools)}, expected modules by name`, example);
  }
  for (const [module, functions] of Object.entries(hostTools)) {
    if (!MODULE.test(module)) {
      const help = 'use 1 to 40 lower-case letters, digits and `-`, beginning with a letter, as in `host:mail`';
      throw wrong(`invalid name \`${module}\` of a host module`, help);
    }
    if (!isRecord(functions)) {
      throw wrong(`\`hostTools.${module}\` is ${kindOf(functions)}, expected functions by name`, example);
    }
    for (const [name, definition] of Object.entries(functions)) {
      if (!FUNCTION.test(name)) {
        const help = 'use letters, digits and `_`, and not a word of TypeScript';
        throw wrong(`invalid name \`${name}\` of a function in \`host:${module}\``, help);
      }
      checkHostTool(`hostTools.${module}.${name}`, definition);
    }
  }
}

function checkHostTool(path: string, definition: HostTools[string][string]): void {
  const shape = 'pass an object `{ description, input, output, effect, execute }`';
  if (!isRecord(definition)) {
    throw wrong(`\`${path}\` is ${kindOf(definition)}, expected an object with \`execute\``, shape);
  }
  checkNames('ECONFIG', definition, Object.keys(HOST_TOOL_FIELDS), 'field', `\`${path}\``);
  const { description, input, output, effect, execute } = definition;
  if (typeof execute !== 'function') {
    throw wrong(`\`${path}.execute\` is ${kindOf(execute)}, expected a function`, shape);
  }
  if (typeof description !== 'string') {
    throw wrong(`\`${path}.description\` is ${kindOf(description)}, expected a string`, 'say in a sentence what it does');
  }
  if (effect !== undefined && !EFFECTS.includes(effect)) {
    throw wrong(`unknown effect \`${String(effect)}\` of \`${path}\``, suggestion(String(effect), EFFECTS));
  }
  checkSchema(`${path}.input`, input);
  checkSchema(`${path}.output`, output);
}

function checkSchema(path: string, schema: unknown): void {
  if (schema === undefined) {
    return;
  }
  if (!isRecord(schema)) {
    throw wrong(`\`${path}\` is ${kindOf(schema)}, expected a JSON Schema`, "such as `{ type: 'object', properties: { … } }`");
  }
  if ('~standard' in schema) {
    throw wrong(`\`${path}\` is a schema of a library, expected a JSON Schema`, 'for zod, pass `z.toJSONSchema(schema)`');
  }
  try {
    checkJson(schema, path);
  } catch (error) {
    throw error instanceof TGPError ? new TGPError('ECONFIG', error.message, { ...error.details }) : error;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrong(message: string, help: string): TGPError {
  return new TGPError('ECONFIG', message, { help });
}
