/** A virtual file system in a directory. */

import { randomUUID } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

import { TGPError } from '../errors.js';
import type { VFSEntry } from './adapter.js';
import { toBytes, type CompleteVFS } from './memory.js';
import { normalizePath, notFound, parents } from './paths.js';
import { applyInOrder } from './undo.js';

/** Names of files that are not complete yet. */
const TEMPORARY = '.tgp-tmp-';

/** A virtual file system in a directory, which is made when it does not exist. It follows no links. */
export function createNodeVFS(rootDirectory: string): CompleteVFS {
  const root = resolve(rootDirectory);

  /** The file of a path. A link on the way could lead out of the root. */
  const locate = async (path: string): Promise<{ key: string; file: string }> => {
    const key = normalizePath(path);
    for (const part of [...parents(key), key].filter((part) => part !== '')) {
      if ((await statOf(join(root, part)))?.isSymbolicLink()) {
        throw new TGPError('ESECURITY', `\`${part}\` is a symbolic link`);
      }
    }
    return { key, file: join(root, key) };
  };

  const readBytes = async (path: string): Promise<Uint8Array | undefined> => {
    const { file } = await locate(path);
    try {
      return await readFile(file);
    } catch (error) {
      if (isCode(error, 'ENOENT', 'ENOTDIR', 'EISDIR')) {
        return undefined;
      }
      throw error;
    }
  };

  const entry = async (path: string): Promise<VFSEntry | undefined> => {
    const { key, file } = await locate(path);
    const stat = await statOf(file);
    if (stat === undefined || !(stat.isFile() || stat.isDirectory())) {
      return undefined;
    }
    return { path: key, directory: stat.isDirectory(), size: stat.isDirectory() ? 0 : stat.size };
  };

  /** A reader sees the old file or the new one, never a part. */
  const write = async (path: string, content: string | Uint8Array): Promise<void> => {
    const { key, file } = await locate(path);
    if (key === '') {
      throw new TGPError('ECONFLICT', 'cannot write to the root');
    }
    await mkdir(dirname(file), { recursive: true });
    const temporary = join(dirname(file), `${TEMPORARY}${randomUUID()}`);
    try {
      await writeFile(temporary, toBytes(content), { flag: 'wx' });
      await rename(temporary, file);
    } finally {
      await rm(temporary, { force: true });
    }
  };

  const remove = async (path: string): Promise<void> => {
    const { file } = await locate(path);
    await rm(file, { force: true });
  };

  const entries = async (directory: string): Promise<VFSEntry[]> => {
    const { key, file } = await locate(directory);
    const found: VFSEntry[] = [];
    await walk(file, key, found);
    return found.sort((one, other) => (one.path < other.path ? -1 : 1));
  };

  return {
    readBytes,
    entry,
    entries,
    remove,
    writeFile: write,
    async readFile(path) {
      const bytes = await readBytes(path);
      if (bytes === undefined) {
        throw notFound(path);
      }
      return Buffer.from(bytes).toString('utf8');
    },
    async exists(path) {
      return (await entry(path)) !== undefined;
    },
    async listFiles(directory, recursive = false) {
      const key = normalizePath(directory);
      const depth = key === '' ? 1 : key.split('/').length + 1;
      const files = (await entries(key)).filter((found) => !found.directory).map((found) => found.path);
      return files.filter((path) => recursive || path.split('/').length === depth);
    },
    apply: (changes) => applyInOrder({ readBytes, writeFile: write, remove }, changes),
  };
}

/** Links and special files are not part of the repository. */
async function walk(directory: string, key: string, found: VFSEntry[]): Promise<void> {
  for (const member of await membersOf(directory)) {
    const path = key === '' ? member.name : `${key}/${member.name}`;
    const file = join(directory, member.name);
    if (member.isDirectory()) {
      found.push({ path, directory: true, size: 0 });
      await walk(file, path, found);
    } else if (member.isFile() && !member.name.startsWith(TEMPORARY)) {
      found.push({ path, directory: false, size: (await statOf(file))?.size ?? 0 });
    }
  }
}

async function membersOf(directory: string): Promise<Dirent[]> {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) {
      return [];
    }
    throw error;
  }
}

async function statOf(file: string) {
  try {
    return await lstat(file);
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) {
      return undefined;
    }
    throw error;
  }
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? '');
}
