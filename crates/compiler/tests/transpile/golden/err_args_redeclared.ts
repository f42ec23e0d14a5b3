const args = { n: 1 };
args.n
