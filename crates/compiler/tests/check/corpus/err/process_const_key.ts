const head = 'pro';
const name = head + 'cess';
const table = { key: name };

/** Through constants and tables. */
export default () => [globalThis[name], globalThis[table.key], globalThis[['process'][0]]];
