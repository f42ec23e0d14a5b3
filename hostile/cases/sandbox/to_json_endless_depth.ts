// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
export default () => ({ toJSON() { return { inner: this }; } });
