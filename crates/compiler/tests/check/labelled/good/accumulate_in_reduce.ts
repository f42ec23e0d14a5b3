/** Groups words by their first letter. */
export default function byLetter(args: { words: string[] }): Record<string, string[]> {
  return args.words.reduce((groups, word) => {
    const letter = word[0].toUpperCase();
    (groups[letter] ||= []).push(word);
    return groups;
  }, {} as Record<string, string[]>);
}
