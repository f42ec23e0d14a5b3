class Maker extends Function {}

/** Makes code by inheritance. */
export default () => new Maker('return 1');
