// expect: ERR_ISOLATE_TIMEOUT
export default () => 'x'.replace(/x/, () => { for (;;) {} });
