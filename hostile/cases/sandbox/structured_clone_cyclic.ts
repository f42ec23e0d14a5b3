// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT | ERUNTIME
type Node = { self?: Node; list: unknown[] };
let bomb: Node = { list: [] };
bomb.self = bomb;
for (let at = 0; at < 40; at += 1) bomb = { list: [bomb, structuredClone(bomb), structuredClone(bomb)] };
