const { fib } = require('./fib');
export default (args: { n: number }) => fib(args.n);
export const lazy = () => import('./lazy');
