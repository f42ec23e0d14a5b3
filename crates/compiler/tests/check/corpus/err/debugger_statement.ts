/** Stops. */
export default function tool(): number {
  debugger;
  return 1;
}
