// expect: ERUNTIME
export default () => new Promise(() => setTimeout(() => { throw new Error('later'); }, 1));
