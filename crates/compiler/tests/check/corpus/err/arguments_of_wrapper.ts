/** The wrapper of a CommonJS module has arguments. */
module.exports = () => arguments[1];
