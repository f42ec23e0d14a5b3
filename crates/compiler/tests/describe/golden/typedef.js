/**
 * @typedef {Object} Options
 * @property {string} path - where
 * @property {number} [depth] - how deep
 * @property {Sort=} sort
 */

/** @typedef {'name' | 'size'} Sort */

/**
 * Lists files.
 * @param {Options} options what to list
 * @return {Array<{ name: string, size: int }>}
 */
export default function list(options) {
  return tgp.list_files(options.path).map((name) => ({ name, size: options.depth }));
}
