/** The global object as a default, a field, a spread, an element. */
export default function tool(root = globalThis) {
  class Holder {
    world = globalThis;
  }
  let later;
  later = globalThis;
  const [first] = [globalThis];
  return [root, new Holder(), later, first, { ...globalThis }, `${globalThis}`];
}
