// expect: ERR_ISOLATE_TIMEOUT
export default () => /^(\w+\s?)*\1$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!');
