import p = globalThis.process;
import g = globalThis;

/** The import that is an assignment. */
export default () => [p, g];
