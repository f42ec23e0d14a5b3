/** Adds. */
const { a, b } = args;
return a + b;
