/** Through the global object. */
export default () => globalThis.process.pid;
