import path = require('./path');
const helper: (n: number) => number = require('./helper');
module.exports = (args: { n: number }) => helper(args.n) + path.depth;
module.exports.extra = 1;
