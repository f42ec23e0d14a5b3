```ts
/** Doubles a number. */
export default function double(args: { n: number }): number {
  return args.n + args.n;
}
```
