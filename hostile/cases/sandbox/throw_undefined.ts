// expect: ERUNTIME
export default () => {
  throw undefined;
};
