/**
 * Searches a list.
 * @param {string} query - what to look for
 * @param {number} [limit=10] - how many to give back
 * @returns {string[]} the hits
 */
const hits = args.list.filter((item) => item.includes(args.query));
hits.slice(0, args.limit);
