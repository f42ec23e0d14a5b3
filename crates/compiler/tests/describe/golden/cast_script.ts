interface Args {
  words: string[];
}
/**
 * Joins words.
 * @param args.words what to join
 */
const { words } = args as Args;
words.join(' ');
