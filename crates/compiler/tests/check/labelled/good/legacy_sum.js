/** Adds up the numbers it is given. */
module.exports = function sum(args) {
  return args.values.reduce((total, value) => total + value, 0);
};
