const load = require;

/** By another name. */
module.exports = () => [load('fs'), (0, require)('fs'), require.cache, globalThis.require('fs')];
