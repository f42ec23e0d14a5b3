// expect: OK
// result: []
const found: string[] = [];
for (const name of ['host', 'start', 'settle', 'fireTimer', 'callback', 'values', 'exports', 'signal', 'seed', 'clock', 'environment', 'native']) {
  Object.defineProperty(Object.prototype, name, {
    configurable: true,
    get(this: object) {
      if (this !== null && typeof (this as { call?: unknown }).call === 'function' && typeof this !== 'function') found.push(name);
      return undefined;
    },
    set(this: object, value: unknown) {
      if (typeof value === 'function') found.push(name);
    },
  });
}
export default async () => {
  console.log({ a: 1 });
  await tgp.read_file('x').catch(() => 0);
  await new Promise((resolve) => setTimeout(resolve, 1));
  return found;
};
