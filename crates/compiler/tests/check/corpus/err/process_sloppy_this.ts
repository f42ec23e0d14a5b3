/** In sloppy code, a plain function's `this` is the global object. */
module.exports = function tool() {
  const root = this;
  return [this.process, root['process'], (function () { return this; })().process];
};
