type Tool<A, R> = (args: A) => R;

/** Reverses a text. */
const reverse: Tool<{ text: string }, string> = (args) => [...args.text].reverse().join('');

export { reverse as default };
