// expect: ERR_ISOLATE_TIMEOUT
const list = Array.from({ length: 500_000 }, () => 0);
export default () => list.sort(() => Math.random() - 0.5).length;
