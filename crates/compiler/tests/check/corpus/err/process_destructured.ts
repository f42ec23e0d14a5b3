const { process: p, Math: m, ...rest } = globalThis;

/** Taken apart. */
export default () => m.max(p.pid, Object.keys(rest).length);
