// eslint-disable-next-line
// @ts-check
// Helpers for numbers.
const double = (n) => n * 2;
module.exports = { double, half: (n) => n / 2 };
