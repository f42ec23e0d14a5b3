// expect: ERUNTIME
export default () => {
  throw Symbol('odd');
};
