const next = (() => {
  let n = 0;
  return () => ++n;
})();

function makeCounter() {
  let total = 0;
  return (by: number) => (total += by);
}
const add = makeCounter();

/** Counts in a closure. */
export default (): number => next() + add(1);
