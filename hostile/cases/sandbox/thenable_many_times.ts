// expect: OK
// result: 1
export default () => ({ then(done: (value: number) => void) { done(1); done(2); throw new Error('too late'); } });
