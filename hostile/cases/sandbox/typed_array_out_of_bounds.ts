// expect: OK
// result: [0,0,0]
const buffer = new ArrayBuffer(4096, { maxByteLength: 4096 });
const fixed = new Uint8Array(buffer, 1024, 1024);
const tracking = new Uint8Array(buffer, 1024);
class Liar extends Uint8Array {
  static get [Symbol.species]() {
    return function () { return fixed; } as never;
  }
}
export default () => {
  buffer.resize(16);
  Object.defineProperty(Uint8Array.prototype, 'constructor', { value: Liar });
  const lengths = [fixed, tracking].map((view) => { try { return new TextDecoder().decode(view).length; } catch { return 0; } });
  return [...lengths, fixed.length];
};
