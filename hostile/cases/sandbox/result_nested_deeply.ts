// expect: ERUNTIME
let deep: unknown = null;
for (let at = 0; at < 1_000; at += 1) deep = [deep];
export default () => deep;
