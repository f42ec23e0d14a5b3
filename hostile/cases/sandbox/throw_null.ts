// expect: ERUNTIME
export default () => {
  throw null;
};
