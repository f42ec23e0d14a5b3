/** Splits a stream of bytes into lines of bounded size. */

/** The largest message in either direction, without its line feed. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024;

const LINE_FEED = 0x0a;

export class LineTooLongError extends Error {
  constructor(limit: number) {
    super(`a line has more than ${limit} bytes`);
  }
}

export class LineSplitter {
  readonly #limit: number;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(limit: number = MAX_LINE_BYTES) {
    this.#limit = limit;
  }

  /** The lines that are complete with this piece. Throws `LineTooLongError` before more than the limit is kept. */
  push(piece: Buffer): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = piece.indexOf(LINE_FEED); end !== -1; end = piece.indexOf(LINE_FEED, start)) {
      this.#keep(piece.subarray(start, end));
      lines.push(Buffer.concat(this.#parts, this.#size).toString('utf8'));
      this.#parts = [];
      this.#size = 0;
      start = end + 1;
    }
    if (start < piece.length) {
      this.#keep(piece.subarray(start));
    }
    return lines;
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#limit) {
      throw new LineTooLongError(this.#limit);
    }
    this.#parts.push(part);
  }
}
