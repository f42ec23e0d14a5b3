const squares: number[] = [];
for (let n = 0; n < 8; n++) squares.push(n * n);
const handlers: Record<string, (n: number) => number> = {};
handlers.double = (n) => n * 2;
let largest = 0;
for (const square of squares) largest = Math.max(largest, square);

/** Tables that are filled while the module is loaded. */
export default (args: { n: number; handler: string }): number => handlers[args.handler](squares[args.n] ?? largest);
