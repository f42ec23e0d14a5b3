// expect: OK
// cpu: roomy
// result: 1
let deep: object = {};
for (let at = 0; at < 50_000; at += 1) deep = { deep };
export default () => {
  console.log(deep, [[[[[[[deep]]]]]]]);
  return 1;
};
