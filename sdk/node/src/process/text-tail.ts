/** Keeps the end of a stream. */

export class TextTail {
  readonly #limit: number;
  #tail: Buffer = Buffer.alloc(0);
  #isCut = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(piece: Buffer): void {
    const joined = Buffer.concat([this.#tail, piece.subarray(-this.#limit)]);
    this.#isCut ||= joined.length > this.#limit || piece.length > this.#limit;
    this.#tail = joined.subarray(-this.#limit);
  }

  toString(): string {
    // A cut may have split a character.
    const text = this.#tail.toString('utf8').replace(/^\uFFFD+/, '');
    return this.#isCut ? `…${text}` : text;
  }
}
