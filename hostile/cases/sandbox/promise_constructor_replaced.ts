// expect: ERUNTIME | OK
Object.defineProperty(Promise.prototype, 'constructor', { get() { throw new Error('trap'); } });
export default async () => {
  await Promise.resolve(1);
  return 1;
};
