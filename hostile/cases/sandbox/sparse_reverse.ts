// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
const sparse: number[] = [];
sparse[4_000_000_000] = 1;
export default () => sparse.reverse().length;
