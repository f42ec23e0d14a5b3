// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | OK
let proxy: object = {};
for (let at = 0; at < 50_000; at += 1) proxy = new Proxy(proxy, {});
export default () => (proxy as { x?: number }).x ?? null;
