function world() {
  return this;
}

/** A plain function hands out the global object. */
module.exports = () => world().process;
