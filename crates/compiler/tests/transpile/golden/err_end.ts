export default () => {
  return 1;
