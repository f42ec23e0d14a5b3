// expect: ERR_ISOLATE_TIMEOUT
export default () => [3, 1, 2].sort(() => { while (true) {} });
