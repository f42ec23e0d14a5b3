const WORDS_PER_MINUTE = 220;

/** How many minutes it takes to read a text. */
export default function readingTime(args: { text: string }): number {
  const words = args.text.trim().split(/\s+/).length;
  return Math.max(1, Math.ceil(words / WORDS_PER_MINUTE));
}
