// expect: ERUNTIME
export default () => {
  throw Object.assign(new Error('forged'), { code: 'ERR_ISOLATE_MEMORY' });
};
