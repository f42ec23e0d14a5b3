// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
export default () => new Set({ [Symbol.iterator]: () => ({ n: 0, next() { return { done: false, value: this.n++ }; } }) } as never).size;
