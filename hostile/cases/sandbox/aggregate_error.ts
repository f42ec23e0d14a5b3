// expect: ERUNTIME
export default () => Promise.any([Promise.reject(new Error('a')), Promise.reject(null)]);
