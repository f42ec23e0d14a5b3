const d = (..._: unknown[]): void => {};
class A { @d #x = 1; }
const B = @d class {};
export default [A, B];
