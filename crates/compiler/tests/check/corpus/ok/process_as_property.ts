class Queue {
  process(item: string): string {
    return item.trim();
  }
  run(items: string[]): string[] {
    return items.map((item) => this.process(item));
  }
}

/** Properties may be called what they like. */
export default function run(args: { items: string[]; handlers: { eval: (x: string) => string; fetch: string } }) {
  const { process, ...rest } = { process: 'x', eval: 'y' };
  return [new Queue().run(args.items), args.handlers.eval('a'), args.handlers.fetch, process, rest.eval];
}
