let calls = 0;

/** Numbers requests. */
export default function numberRequest(args: { name: string }): string {
  calls += 1;
  return `${args.name}-${calls}`;
}
