// expect: ERR_ISOLATE_TIMEOUT
const every = /(?:)/g;
export default () => {
  while (every.exec('abc') !== null) every.lastIndex = 0;
};
