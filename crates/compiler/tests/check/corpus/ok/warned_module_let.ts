let PATTERN = /\s+/;

/** Words of a text. */
export default function words(args: { text: string }): string[] {
  return args.text.split(PATTERN);
}
