interface Span {
  from: Date;
  until?: Date | null;
  /** A tool that takes text as well knows what arrives. */
  at?: Date | string;
  note: string;
}

/** Says how long something takes. */
export default function length(args: Span): number {
  return Number(args.until ?? args.at) - Number(args.from);
}
