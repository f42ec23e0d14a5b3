// expect: ERUNTIME
export default () => setTimeout('globalThis.x = 1' as never, 0);
