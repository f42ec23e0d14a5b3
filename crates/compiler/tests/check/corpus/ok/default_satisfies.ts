type Tool = (args: { text: string }) => string;

/** Trims a text. */
export default ((args) => args.text.trim()) satisfies Tool;
