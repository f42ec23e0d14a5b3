/** Doubles the numbers in args.values. */
(args.values as number[]).map((value) => value * 2);
