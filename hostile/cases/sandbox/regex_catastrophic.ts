// expect: ERR_ISOLATE_TIMEOUT
export default () => /^(a+)+$/.test(`${'a'.repeat(60)}!`);
