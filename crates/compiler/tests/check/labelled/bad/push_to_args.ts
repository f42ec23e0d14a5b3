/** Adds a default tag. */
export default function addTag(args: { tags: string[]; tag: string }): string[] {
  args.tags.push(args.tag);
  return args.tags;
}
