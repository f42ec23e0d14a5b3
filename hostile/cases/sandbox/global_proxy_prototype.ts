// expect: OK
// result: "alive"
Object.setPrototypeOf(Object.getPrototypeOf(globalThis) ?? globalThis, null);
export default async () => {
  try { Object.setPrototypeOf(globalThis, new Proxy({}, { get() { throw new Error('trap'); }, has() { return false; } })); } catch { /* refused */ }
  console.log('still here');
  return 'alive';
};
