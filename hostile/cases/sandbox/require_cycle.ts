// expect: OK
// result: "undefined object"
const other = require('./require_cycle_other.ts');
module.exports = () => `${typeof other.late} ${typeof other}`;
// file: require_cycle_other.ts
const whole = require('./require_cycle.ts');
module.exports = { late: whole.missing };
