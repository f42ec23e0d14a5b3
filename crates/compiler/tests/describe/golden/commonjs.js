'use strict';
const { clamp } = require('./clamp');

/**
 * Adds up numbers, at most to a maximum.
 * @param {Object} args
 * @param {number[]} args.values - the summands
 * @param {number} [args.max=100] upper bound
 * @param {?string} args.unit
 * @param {{ digits: number, mode?: 'up' | 'down' }} args.rounding
 * @param {Array.<string>=} args.labels
 * @returns {Promise<{ total: number }>} the sum
 */
module.exports = async function total(args) {
  return { total: clamp(args.values.reduce((sum, value) => sum + value, 0), args.max) };
};
