/** Taken apart twice. */
export default function tool() {
  const { globalThis: { process } } = globalThis;
  let evaluate;
  ({ eval: evaluate } = globalThis);
  return evaluate(process);
}
