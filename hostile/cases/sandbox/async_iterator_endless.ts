// expect: ERR_ISOLATE_TIMEOUT
const endless = { [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: 1 }) }) };
export default async () => {
  for await (const _ of endless) { /* again */ }
};
