// expect: ERUNTIME
export default () => new Promise(() => {});
