export default function same(args: { value: string }): string {
  return args.value;
}
