/** Ways around the type checker. */
export default function escapes(args: { value: string }): number {
  // @ts-ignore
  const length: number = args.value;
  return (length as unknown as string[]).length;
}
