// role: library, id: npm:pkg/root.js
var root = typeof self === 'object' && self || Function('return this')();
var other = new Function('return this;')();
module.exports = root === other;
