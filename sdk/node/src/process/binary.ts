/** Finds the program `tgp`: an option, `TGP_BIN`, the package of the platform, or the path. */

import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join, resolve } from 'node:path';

import { TGPError } from '../errors.js';

export const BINARY_VARIABLE = 'TGP_BIN';

/** How long a program may take to print its version, and how much of it is read and shown. */
const VERSION_MS = 5_000;
const VERSION_BYTES = 64 * 1024;
const SHOWN_CHARACTERS = 100;

export interface BinarySearch {
  /** Wins over everything else. */
  binary?: string | undefined;
  environment: NodeJS.ProcessEnv;
  /** Files or directories whose `node_modules` are searched. */
  bases: readonly string[];
}

export function findBinary(search: BinarySearch): string {
  const named = search.binary ?? search.environment[BINARY_VARIABLE];
  if (named !== undefined && named !== '') {
    const path = resolve(named);
    if (isProgram(path)) {
      return path;
    }
    const source = search.binary === undefined ? `\`${BINARY_VARIABLE}\`` : '`binary`';
    throw new TGPError('ECAPABILITY', `${source} names \`${path}\`, which is not an executable file`, {
      help: `set ${source} to the file of \`tgp\`, or leave it out to use the installed one`,
    });
  }
  const found = inPlatformPackage(search.bases) ?? onPath(search.environment['PATH']);
  if (found !== undefined) {
    return found;
  }
  throw new TGPError('ECAPABILITY', 'the program `tgp` was not found', {
    help:
      `install the package \`${platformPackage()}\` (an installation with --omit=optional leaves it out), ` +
      `put \`tgp\` on the path, or set \`${BINARY_VARIABLE}\` to its file`,
  });
}

/** Throws `ECAPABILITY` if a program that did not boot is not `tgp`, by what it prints as its version. */
export async function checkIsTgp(binary: string, env: NodeJS.ProcessEnv, option: string | undefined): Promise<void> {
  const printed = await new Promise<string>((resolve) => {
    const child = execFile(binary, ['--version'], { env, timeout: VERSION_MS, maxBuffer: VERSION_BYTES }, (_error, stdout) =>
      resolve(stdout.trim()),
    );
    child.stdin?.end();
  });
  if (/^tgp \d/.test(printed)) {
    return;
  }
  const [line = ''] = printed.split('\n', 1);
  const shown = line === '' ? 'prints no version' : `prints \`${line.slice(0, SHOWN_CHARACTERS)}\` as its version`;
  const source = option ?? BINARY_VARIABLE;
  throw new TGPError('ECAPABILITY', `\`${binary}\` is not the program \`tgp\`: it ${shown}`, {
    help: `set \`${source}\` to the file of \`tgp\`, or leave it out to use the installed one`,
  });
}

export function platformPackage(): string {
  return `@tgp/${process.platform}-${process.arch}`;
}

/** The package of the platform is a dependency of `tgp`, which is one of `@tgp/core`. Strict layouts show only the next link. */
function inPlatformPackage(bases: readonly string[]): string | undefined {
  const program = `${platformPackage()}/bin/tgp`;
  for (const base of bases) {
    let from = base;
    for (const step of ['@tgp/core/package.json', 'tgp/package.json']) {
      const direct = tryResolve(from, program);
      if (direct !== undefined && isProgram(direct)) {
        return direct;
      }
      from = tryResolve(from, step) ?? from;
    }
    const last = tryResolve(from, program);
    if (last !== undefined && isProgram(last)) {
      return last;
    }
  }
  return undefined;
}

function tryResolve(from: string, request: string): string | undefined {
  try {
    return createRequire(from).resolve(request);
  } catch {
    return undefined;
  }
}

function onPath(path: string | undefined): string | undefined {
  return (path ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, 'tgp'))
    .find((file) => isProgram(file) && !isLauncher(file));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** `npx` and npm scripts put `node_modules/.bin` on the path: its `tgp` is a Node program that starts the real one. */
function isLauncher(path: string): boolean {
  return path.endsWith(join('node_modules', '.bin', 'tgp'));
}
