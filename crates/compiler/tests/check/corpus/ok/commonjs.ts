/** Adds up numbers. */
const { clamp } = require('./clamp');

module.exports = function total(args: { values: number[]; max: number }) {
  return clamp(args.values.reduce((sum, value) => sum + value, 0), args.max);
};
