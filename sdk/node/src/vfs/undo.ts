/** Several changes as one, for a file system that makes them one by one. */

import type { VFSChange } from './adapter.js';

interface Files {
  readBytes(path: string): Promise<Uint8Array | undefined>;
  writeFile(path: string, content: Uint8Array): Promise<void>;
  remove(path: string): Promise<void>;
}

/** Restores what was there when one of the changes fails. */
export async function applyInOrder(files: Files, changes: readonly VFSChange[]): Promise<void> {
  const before: VFSChange[] = [];
  try {
    for (const change of changes) {
      before.push({ path: change.path, content: await files.readBytes(change.path) });
      await applyOne(files, change);
    }
  } catch (error) {
    for (const change of before.reverse()) {
      await applyOne(files, change).catch(() => {});
    }
    throw error;
  }
}

async function applyOne(files: Files, { path, content }: VFSChange): Promise<void> {
  await (content === undefined ? files.remove(path) : files.writeFile(path, content));
}
