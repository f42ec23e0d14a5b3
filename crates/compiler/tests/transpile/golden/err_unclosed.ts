export default () => {
  return [1, 2;
};
