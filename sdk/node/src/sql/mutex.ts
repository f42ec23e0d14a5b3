/** Lets one user at a time have a connection, in the order of arrival. */

export class Mutex {
  #last: Promise<void> = Promise.resolve();

  /** Waits for the turn; the result ends it. */
  async acquire(): Promise<() => void> {
    let release = (): void => {};
    const turn = this.#last;
    this.#last = new Promise((resolve) => {
      release = resolve;
    });
    await turn;
    return release;
  }
}
