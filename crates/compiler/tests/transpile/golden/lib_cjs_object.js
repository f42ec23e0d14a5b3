// role: library, id: npm:pkg/object.js
'use strict';
const a = 1;
module.exports = { a, b: 2, 'c-d': 3, 'e': 4, ...require('./more') };
0 && (module.exports = { annotated });
