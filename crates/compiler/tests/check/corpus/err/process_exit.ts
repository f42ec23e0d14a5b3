/** Leaves. */
export default function tool(): number {
  process.exit();
  return 1;
}
