/** Sum of a list. */
let total = 0;
args.values.forEach((value: number) => {
  tgp.log(`adding ${value}`);
  total += value;
});
return total;
