// role: library, id: npm:pkg/umd.js
(function (global, factory) {
  typeof exports === 'object' && typeof module !== 'undefined' ? factory(exports) :
  typeof define === 'function' && define.amd ? define(['exports'], factory) : factory((global.x = {}));
})(this, function (exports) { exports.inner = 1; });
