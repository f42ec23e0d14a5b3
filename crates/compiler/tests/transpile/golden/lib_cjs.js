// role: library, id: npm:pkg/index.js
var util = require('./util');
var star = _interopRequireWildcard(require('./star'));
function _interopRequireWildcard(e) { return e; }
Object.defineProperty(exports, '__esModule', { value: true });
Object.defineProperty(exports, 'defined', { enumerable: true, get: function () { return util.x; } });
exports.first = exports.second = void 0;
exports.first = function () { return this instanceof Function; };
module.exports.third = 3;
__exportStar(require('./all'), exports);
Object.keys(star).forEach(function (key) { exports[key] = star[key]; });
if (process.env.NODE_ENV !== 'production') { module.exports = require('./dev'); } else { module.exports = require('./prod'); }
try { require('optional-thing'); } catch (error) {}
with (exports) { first; }
