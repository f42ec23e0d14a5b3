/** The tools of the kernel for an agent. */

import { checkNames } from '../checks.js';
import { DEFINITIONS, type KernelToolName } from '../definitions.gen.js';
import { TGPError } from '../errors.js';
import { kindOf } from '../json.js';
import type { TGP } from '../kernel.js';
import type { ToolInfo } from '../protocol.gen.js';
import { checkKernel } from '../registry.js';
import { nearest } from '../suggest.js';
import { agentTool, type ToolSet } from './tool.js';

/** What an agent needs to find, forge, test and run tools. */
const DEFAULT_TOOLS = [
  'search',
  'list_files',
  'read_file',
  'write_file',
  'patch_file',
  'check_tool',
  'test_tool',
  'exec_tool',
] as const satisfies readonly KernelToolName[];

/** The names of the tools to find, forge, test and run tools. */
export type DefaultToolName = (typeof DEFAULT_TOOLS)[number];

export interface TgpToolsOptions<Name extends KernelToolName> {
  /** Exactly these tools, such as `['search', 'exec_tool', 'fs_read']`. */
  only?: readonly Name[];
}

/**
 * The tools of the kernel, each of which calls it through the router. Without options these are the tools for forged tools;
 * `only` names others, such as those for the files of the project (`fs_read`, `fs_write`, …) and for commands (`shell_exec`).
 */
export function tgpTools(kernel: TGP): ToolSet<DefaultToolName>;
export function tgpTools<Name extends KernelToolName>(
  kernel: TGP,
  options: { only: readonly Name[] },
): ToolSet<Name>;
export function tgpTools(kernel: TGP, options: TgpToolsOptions<KernelToolName> = {}): ToolSet {
  checkKernel('tgpTools()', kernel);
  checkNames('EVALIDATION', options, ['only'], 'option', '`tgpTools()`');
  const names: readonly string[] = options.only ?? DEFAULT_TOOLS;
  if (!Array.isArray(names)) {
    const message = `\`only\` of \`tgpTools()\` is ${kindOf(names)}, expected a list of names`;
    throw new TGPError('EVALIDATION', message, { help: "such as `{ only: ['exec_tool'] }`", field: 'only' });
  }
  return Object.fromEntries(names.map((name) => [name, agentTool(kernel, definitionOf(name))]));
}

export function definitionOf(name: string): ToolInfo {
  const definition = DEFINITIONS.find((definition) => definition.name === name);
  if (definition === undefined) {
    const near = nearest(name, DEFINITIONS.map((known) => known.name));
    const help = near === undefined ? '`await kernel.tools()` lists them' : `did you mean \`${near}\`?`;
    throw new TGPError('ENOTFOUND', `the kernel has no tool \`${name}\``, { help });
  }
  return definition;
}
