export default function toTitleCase(args: { text: string }): string {
  return args.text.replace(/\b\w/g, (char) => char.toUpperCase());
}
