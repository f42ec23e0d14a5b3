/** Where the tool repository is kept, when the application keeps it. Paths have `/` and are relative to the repository. */

/** A file or a directory. */
export interface VFSEntry {
  path: string;
  directory: boolean;
  /** Bytes of a file. */
  size: number;
}

/** A file that is written or removed. */
export interface VFSChange {
  path: string;
  /** The file is removed when there is no content. */
  content: Uint8Array | undefined;
}

/** The first five methods are enough; the others are faster or safer. */
export interface VFSAdapter {
  /** Throws when there is no such file. */
  readFile(path: string): Promise<string>;
  /** Makes the missing directories. */
  writeFile(path: string, content: string | Uint8Array): Promise<void>;
  /** Removing what does not exist is not an error. */
  remove(path: string): Promise<void>;
  exists(path: string): Promise<boolean>;
  /** The files below a directory; with `recursive` also those of its directories. */
  listFiles(directory: string, recursive?: boolean): Promise<string[]>;

  /** The bytes of a file. Without it, files are UTF-8 text. */
  readBytes?(path: string): Promise<Uint8Array | undefined>;
  entry?(path: string): Promise<VFSEntry | undefined>;
  /** Everything below a directory, recursively. */
  entries?(directory: string): Promise<VFSEntry[]>;
  /** Applies all changes or none. Without it, changes are made one by one and undone when one fails. */
  apply?(changes: readonly VFSChange[]): Promise<void>;
}
