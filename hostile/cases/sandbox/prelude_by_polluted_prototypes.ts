// expect: OK
// result: []
const stolen: string[] = [];
const natives = ['armTimer', 'violate', 'cancelCall'];
for (const name of ['map', 'filter', 'some', 'includes', 'push', 'splice', 'entries'] as const) {
  const own = Array.prototype[name] as never as (...values: unknown[]) => unknown;
  Object.defineProperty(Array.prototype, name, {
    value(this: unknown[], ...values: unknown[]) {
      for (const item of [this, ...values]) {
        if (typeof item === 'object' && item !== null) for (const native of natives) if (native in item) stolen.push(name);
      }
      return own.apply(this, values);
    },
  });
}
export default async () => {
  await new Response(new Blob(['a'])).text();
  console.log('%s', { a: [1] }, new URL('https://a.test'));
  await crypto.subtle.digest('SHA-256', Buffer.from('a'));
  return stolen;
};
