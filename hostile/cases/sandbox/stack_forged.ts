// expect: ERUNTIME
export default () => {
  const error = new Error('forged');
  error.stack = '    at x (tools/hostile/stack_forged.ts:99999999999999999999:1)\n    at y (:::)\n    at (((';
  throw error;
};
