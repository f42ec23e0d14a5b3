/** The words of a text in a language. */
export default function wordSegments(args: { text: string; locale: string }): string[] {
  const segmenter = new Intl.Segmenter(args.locale, { granularity: 'word' });
  return [...segmenter.segment(args.text)].filter((part) => part.isWordLike).map((part) => part.segment);
}
