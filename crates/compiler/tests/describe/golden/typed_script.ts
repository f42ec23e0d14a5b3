/** Adds up what is above a limit. */
declare const args: { values: number[]; limit?: number };
const above = args.values.filter((value) => value > (args.limit ?? 0));
return above.length > 0;
