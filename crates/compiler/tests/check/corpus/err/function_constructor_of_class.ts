class Maker {
  static make(code: string) {
    return [new this.constructor(code), this.constructor.call(null, code), this.constructor.length];
  }
}

/** The constructor of a class makes code. */
export default (args: { code: string }) => Maker.make(args.code);
