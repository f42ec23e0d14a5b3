/** Walks a queue. */
export default function walk(args: { queue: string[] }): number {
  let steps = 0;
  while (args.queue.length > 0) {
    args.queue.shift();
    steps++;
  }
  return steps;
}
