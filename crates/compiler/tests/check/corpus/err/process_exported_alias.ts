export const world = globalThis;

/** Another file could read anything from it. */
export default () => 1;
