// expect: ERR_ISOLATE_TIMEOUT
export default () => console.log({ get slow() { for (;;) {} } });
