function main(args: { n: number }): number { return args.n; }
export = main;
