/** All primes up to a limit. */
export default function primeSieve(args: { limit: number }): number[] {
  const composite = new Uint8Array(args.limit + 1);
  const primes: number[] = [];
  for (let n = 2; n <= args.limit; n++) {
    if (composite[n]) continue;
    primes.push(n);
    for (let multiple = n * n; multiple <= args.limit; multiple += n) composite[multiple] = 1;
  }
  return primes;
}
