// expect: ERR_ISOLATE_MEMORY | ERUNTIME
export default () => Math.max(...new Array(5_000_000).fill(1));
