const g = globalThis;
const h = (0, g) as unknown as { process: { pid: number } };

/** By another name. */
export default function tool(): number {
  const inner = h;
  return inner.process.pid;
}
