// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
Object.defineProperty(Number.prototype, Symbol.iterator, { *value() { for (;;) yield 1; } });
export default () => [...(5 as never as number[])].length;
