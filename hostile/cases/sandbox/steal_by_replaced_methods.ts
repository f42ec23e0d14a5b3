// expect: OK
// result: []
const seen: unknown[] = [];
const watch = (owner: object, name: PropertyKey) => {
  const descriptor = Object.getOwnPropertyDescriptor(owner, name);
  const original = descriptor?.value;
  if (typeof original !== 'function' || descriptor?.configurable !== true) return;
  Object.defineProperty(owner, name, { ...descriptor, value(this: unknown, ...values: unknown[]) {
    seen[seen.length] = this;
    for (let at = 0; at < values.length; at += 1) seen[seen.length] = values[at];
    return new.target ? Reflect.construct(original, values, new.target) : apply(original, this, values);
  } });
};
const apply = Reflect.apply;
const functions = Object.getPrototypeOf(() => 0);
const ownKeys = Reflect.ownKeys;
export default async () => {
  for (const owner of [Map.prototype, Set.prototype, WeakMap.prototype, Promise, Promise.prototype, functions, Reflect, JSON, Object, Array, Math, String, Symbol]) {
    for (const name of ownKeys(owner)) if (name !== 'constructor' && name !== Symbol.hasInstance && name !== Symbol.species) watch(owner, name);
  }
  console.log({ a: [1] }, new Map([[1, 2]]));
  await tgp.read_file('x').catch(() => 0);
  await new Promise((resolve) => setTimeout(resolve, 1));
  const names = ['call', 'armTimer', 'utf8Encode', 'requireModule', 'settle', 'fireTimer', 'describe', 'start'];
  const found: string[] = [];
  for (let at = 0; at < seen.length; at += 1) {
    const value = seen[at] as Record<string, unknown> | null;
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) continue;
    for (let n = 0; n < names.length; n += 1) {
      if (value !== functions && typeof value[names[n]] === 'function' && names[n] in value && value[names[n]] !== functions.call) found[found.length] = names[n];
    }
  }
  return found;
};
