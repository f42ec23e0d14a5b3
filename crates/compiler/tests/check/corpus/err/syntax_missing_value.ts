/** Broken. */
export default function tool() {
  const x = ;
  return x;
}
