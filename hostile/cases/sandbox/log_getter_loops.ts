// expect: ERR_ISOLATE_TIMEOUT
// A getter is shown as one and not asked; what an object says of itself is.
export default () => console.log({ get slow() { for (;;) {} } }, { [Symbol.for('nodejs.util.inspect.custom')]() { for (;;) {} } });
