// expect: ERUNTIME
export default () => {
  const error = new Error('round', { cause: null });
  error.cause = error;
  console.log(error, { error });
  throw error;
};
