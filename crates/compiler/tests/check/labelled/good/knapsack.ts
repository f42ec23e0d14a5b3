/** The best value that fits into a capacity, each item at most once. */
export default function knapsack(args: { items: { weight: number; value: number }[]; capacity: number }): number {
  const best = new Array<number>(args.capacity + 1).fill(0);
  for (const { weight, value } of args.items) {
    for (let room = args.capacity; room >= weight; room--) {
      best[room] = Math.max(best[room], best[room - weight] + value);
    }
  }
  return best[args.capacity];
}
