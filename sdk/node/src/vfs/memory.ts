/** A virtual file system in memory: for tests, and where no disk keeps anything. */

import { TGPError } from '../errors.js';
import type { VFSAdapter, VFSChange, VFSEntry } from './adapter.js';
import { normalizePath, notFound, parents } from './paths.js';

/** A `VFSAdapter` with every method. */
export type CompleteVFS = Required<VFSAdapter>;

/** A virtual file system in memory, with these files at first. */
export function createMemoryVFS(initialFiles: Record<string, string | Uint8Array> = {}): CompleteVFS {
  let files = new Map<string, Uint8Array>();
  for (const [path, content] of Object.entries(initialFiles)) {
    files.set(normalizePath(path), toBytes(content));
  }

  const applyChanges = (changes: readonly VFSChange[]): void => {
    const next = new Map(files);
    for (const { path, content } of changes) {
      const key = normalizePath(path);
      if (content === undefined) {
        next.delete(key);
      } else {
        checkPlace(next, key);
        next.set(key, Uint8Array.from(content));
      }
    }
    files = next;
  };

  const listEntries = (directory: string): VFSEntry[] => {
    const prefix = directory === '' ? '' : `${directory}/`;
    const found = new Map<string, VFSEntry>();
    for (const [path, content] of files) {
      if (path.startsWith(prefix)) {
        for (const parent of parents(path).filter((parent) => parent.startsWith(prefix))) {
          found.set(parent, { path: parent, directory: true, size: 0 });
        }
        found.set(path, { path, directory: false, size: content.length });
      }
    }
    return [...found.values()].sort((one, other) => (one.path < other.path ? -1 : 1));
  };

  const readBytes = async (path: string): Promise<Uint8Array | undefined> => files.get(normalizePath(path));
  const entry = async (path: string): Promise<VFSEntry | undefined> => {
    const key = normalizePath(path);
    const content = files.get(key);
    if (content !== undefined) {
      return { path: key, directory: false, size: content.length };
    }
    const isDirectory = key === '' || listEntries(key).length > 0;
    return isDirectory ? { path: key, directory: true, size: 0 } : undefined;
  };

  return {
    readBytes,
    entry,
    async readFile(path) {
      const bytes = await readBytes(path);
      if (bytes === undefined) {
        throw notFound(path);
      }
      return Buffer.from(bytes).toString('utf8');
    },
    async writeFile(path, content) {
      applyChanges([{ path, content: toBytes(content) }]);
    },
    async remove(path) {
      applyChanges([{ path, content: undefined }]);
    },
    async exists(path) {
      return (await entry(path)) !== undefined;
    },
    async listFiles(directory, recursive = false) {
      const key = normalizePath(directory);
      const depth = key === '' ? 1 : key.split('/').length + 1;
      const inner = listEntries(key).filter((found) => !found.directory);
      return inner.map((found) => found.path).filter((path) => recursive || path.split('/').length === depth);
    },
    async entries(directory) {
      return listEntries(normalizePath(directory));
    },
    async apply(changes) {
      applyChanges(changes);
    },
  };
}

export function toBytes(content: string | Uint8Array): Uint8Array {
  return typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
}

/** A path is a file or a directory, never both. */
function checkPlace(files: ReadonlyMap<string, Uint8Array>, path: string): void {
  const isTaken = path === '' || [...files.keys()].some((other) => other.startsWith(`${path}/`));
  const blocking = parents(path).find((parent) => files.has(parent));
  if (isTaken || blocking !== undefined) {
    throw new TGPError('ECONFLICT', `cannot write \`${path}\`: \`${blocking ?? path}\` is in the way`);
  }
}
