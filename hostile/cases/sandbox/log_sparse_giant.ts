// expect: OK
// result: 4294967295
const giant = new Array(2 ** 32 - 1);
export default () => {
  console.log(giant);
  return giant.length;
};
