// expect: OK
// result: {"read":"ENOTFOUND","sum":3}
for (const name of ['get', 'set', 'value', 'then', 'code', 'message', 'name', 'stack', 'host', 'start', 'length', 'toJSON', 'call', 'resolve', 'reject', 'seed', 'default', 'exports']) {
  Object.defineProperty(Object.prototype, name, { __proto__: null, value: undefined, writable: true, configurable: true } as PropertyDescriptor);
}
export default async () => {
  const read = await tgp.read_file('missing.json').catch((error: { code: string }) => error.code);
  return { read, sum: 1 + 2 };
};
