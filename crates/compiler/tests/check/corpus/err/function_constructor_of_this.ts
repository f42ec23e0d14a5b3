class Box {
  open(code: string) {
    return [this.constructor.constructor(code), this.constructor(code), this['constructor']['constructor']];
  }
}

/** A class may make its own kind, not code. */
export default (args: { code: string }) => new Box().open(args.code);
