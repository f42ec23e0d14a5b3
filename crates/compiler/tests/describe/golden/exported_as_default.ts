type Tool<Input, Output> = (args: Input) => Output;

/** Reverses a text. */
const reverse: Tool<{ text: string }, string> = (args) => [...args.text].reverse().join('');

export const twice = (text: string): string => text + text;
export type { Tool };
export { reverse as default };
