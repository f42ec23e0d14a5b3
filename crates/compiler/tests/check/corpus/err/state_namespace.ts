namespace Store {
  export const items: string[] = [];
  let last = '';
  export function add(item: string): string {
    last = item;
    items.push(item);
    return last;
  }
}

/** Keeps state in a namespace. */
export default (args: { item: string }) => Store.add(args.item);
