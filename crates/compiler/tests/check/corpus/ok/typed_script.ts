/** Adds, with types. */
const { a, b } = args as { a: number; b: number };
const { c }: { c: number } = args;
return a + b + c;
