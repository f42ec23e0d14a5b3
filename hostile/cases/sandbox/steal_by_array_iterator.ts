// expect: OK
// result: 0
let leaks = 0;
const original = Array.prototype[Symbol.iterator];
Array.prototype[Symbol.iterator] = function (this: unknown[]) {
  for (let at = 0; at < this.length; at += 1) if (this[at] !== null && typeof this[at] === 'object' && 'utf8Encode' in (this[at] as object)) leaks += 1;
  return original.call(this) as never;
};
export default async () => {
  console.log(['a'], new Set([1]));
  await tgp.fetch('http://127.0.0.1:1/').catch(() => 0);
  return leaks;
};
