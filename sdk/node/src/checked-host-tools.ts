/** Checks the functions that an application offers, so that a mistake is reported where it was made. */

import { checkNames, isRecord, wrong, type Names } from './checks.js';
import { TGPError } from './errors.js';
import { checkJson, kindOf } from './json.js';
import type { HostTools } from './options.js';
import { suggestion } from './suggest.js';

const HOST_TOOL_FIELDS: Names<HostTools[string][string]> = {
  description: true,
  input: true,
  output: true,
  effect: true,
  execute: true,
};

const EFFECTS: readonly string[] = ['read', 'write', 'execute', 'network'];
const TYPES: readonly string[] = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];

/** As the kernel takes them. */
const MODULE = /^[a-z][a-z0-9-]{0,39}$/;
const FUNCTION = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** Names that TypeScript cannot export. The kernel has the same list. */
const WORDS =
  'arguments async await break case catch class const continue debugger default delete do else enum eval export extends ' +
  'false finally for function if implements import in instanceof interface let new null package private protected public ' +
  'return static super switch then this throw true try typeof undefined var void while with yield';
const RESERVED: ReadonlySet<string> = new Set(WORDS.split(' '));

/** Throws `ECONFIG` for a name or a definition that the kernel would refuse. */
export function checkHostTools(hostTools: HostTools | undefined): void {
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
    if (Object.keys(functions).length === 0) {
      throw wrong(`\`hostTools.${module}\` has no functions`, 'add one, or leave the module out');
    }
    for (const [name, definition] of Object.entries(functions)) {
      if (!FUNCTION.test(name) || RESERVED.has(name)) {
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
  if (input?.['type'] !== undefined && input['type'] !== 'object') {
    const message = `\`${path}.input.type\` is \`${String(input['type'])}\`, expected \`object\``;
    throw wrong(message, 'the fields of the object are the arguments of the function');
  }
  for (const type of [output?.['type'] ?? []].flat()) {
    if (!TYPES.includes(type as string)) {
      throw wrong(`unknown type \`${String(type)}\` in \`${path}.output\``, suggestion(String(type), TYPES));
    }
  }
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
