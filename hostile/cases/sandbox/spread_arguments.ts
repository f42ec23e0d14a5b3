// expect: ERR_ISOLATE_MEMORY | ERUNTIME
// cpu: roomy
export default () => Math.max(...new Array(5_000_000).fill(1));
