// expect: ERUNTIME
export default () => {
  throw Object.freeze({ __proto__: null, message: 1 });
};
