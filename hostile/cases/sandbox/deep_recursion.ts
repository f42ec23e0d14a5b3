// expect: ERUNTIME
const down = (n: number): number => 1 + down(n + 1);
export default () => down(0);
