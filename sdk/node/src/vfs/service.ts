/** Serves the file requests of the kernel with the adapter of the application. */

import { TGPError } from '../errors.js';
import type {
  FileApplyParams,
  FileEntryResult,
  FileListResult,
  FilePathParams,
  FileReadResult,
} from '../protocol.gen.js';
import type { VFSAdapter, VFSEntry } from './adapter.js';
import { toBytes } from './memory.js';
import { normalizePath, parents } from './paths.js';
import { applyInOrder } from './undo.js';

export class FileService {
  readonly #vfs: VFSAdapter;
  /** Changes come one after the other, so that each is whole. */
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(vfs: VFSAdapter) {
    this.#vfs = vfs;
  }

  async read({ path }: FilePathParams): Promise<FileReadResult> {
    const bytes = await this.#readBytes(normalizePath(path));
    return { content: bytes === undefined ? null : Buffer.from(bytes).toString('base64') };
  }

  async entry({ path }: FilePathParams): Promise<FileEntryResult> {
    const key = normalizePath(path);
    if (this.#vfs.entry !== undefined) {
      return { entry: (await this.#vfs.entry(key)) ?? null };
    }
    const bytes = await this.#readBytes(key);
    if (bytes !== undefined) {
      return { entry: { path: key, directory: false, size: bytes.length } };
    }
    const isDirectory = key === '' || (await this.#vfs.listFiles(key, true)).length > 0;
    return { entry: isDirectory ? { path: key, directory: true, size: 0 } : null };
  }

  async list({ path }: FilePathParams): Promise<FileListResult> {
    const key = normalizePath(path);
    return { entries: this.#vfs.entries === undefined ? await this.#listByFiles(key) : await this.#vfs.entries(key) };
  }

  apply({ changes }: FileApplyParams): Promise<object> {
    const decoded = changes.map(({ path, content }) => ({
      path: checkedPath(path),
      content: content === null || content === undefined ? undefined : Buffer.from(content, 'base64'),
    }));
    const change = this.#lastChange.then(async () => {
      if (this.#vfs.apply !== undefined) {
        await this.#vfs.apply(decoded);
      } else {
        const readBytes = (path: string): Promise<Uint8Array | undefined> => this.#readBytes(path);
        const { writeFile, remove } = this.#vfs;
        await applyInOrder({ readBytes, writeFile: writeFile.bind(this.#vfs), remove: remove.bind(this.#vfs) }, decoded);
      }
      return {};
    });
    this.#lastChange = change.catch(() => {});
    return change;
  }

  async #readBytes(path: string): Promise<Uint8Array | undefined> {
    if (this.#vfs.readBytes !== undefined) {
      return this.#vfs.readBytes(path);
    }
    const isFile = path !== '' && (await this.#vfs.exists(path));
    if (!isFile) {
      return undefined;
    }
    try {
      return toBytes(await this.#vfs.readFile(path));
    } catch (error) {
      // A directory exists and cannot be read as a file.
      if ((await this.#vfs.listFiles(path, true)).length > 0) {
        return undefined;
      }
      throw error;
    }
  }

  async #listByFiles(directory: string): Promise<VFSEntry[]> {
    const prefix = directory === '' ? '' : `${directory}/`;
    const found = new Map<string, VFSEntry>();
    for (const path of await this.#vfs.listFiles(directory, true)) {
      const key = normalizePath(path);
      for (const parent of parents(key).filter((parent) => parent.startsWith(prefix))) {
        found.set(parent, { path: parent, directory: true, size: 0 });
      }
      const bytes = await this.#readBytes(key);
      found.set(key, { path: key, directory: false, size: bytes?.length ?? 0 });
    }
    return [...found.values()];
  }
}

function checkedPath(path: string): string {
  const key = normalizePath(path);
  if (key === '') {
    throw new TGPError('EVALIDATION', 'a change needs the path of a file');
  }
  return key;
}
