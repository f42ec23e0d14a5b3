// expect: ERUNTIME
export default () => {
  const error = new Error('outer');
  Object.defineProperty(error, 'cause', { get: () => Object.assign(new Error('inner'), { cause: error }) });
  throw new AggregateError(Array.from({ length: 10_000 }, () => error), 'many', { cause: error });
};
