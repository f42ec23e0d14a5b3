async function* numbers() {
  yield 1;
  yield 2;
}
let sum = 0;
for await (const number of numbers()) {
  sum += number;
}
return sum;
