/** Who gets the report. */
export default function recipient(args: { title: string }): { to: string; title: string } {
  return { to: 'boss@example.com', title: args.title };
}
