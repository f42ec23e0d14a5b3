interface Handler<In = { text: string; times?: number }, Out = string[]> {
  (args: In): Promise<Out>;
}

/** Repeats a text. */
export default (async (args) => Array.from({ length: args.times ?? 1 }, () => args.text)) satisfies Handler;
