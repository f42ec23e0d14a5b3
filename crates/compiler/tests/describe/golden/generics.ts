type Page<Item, Cursor = string> = { items: Item[]; next?: Cursor };
interface Box<T extends object> {
  inner: T;
}

/** Takes a page apart. */
export default function page<Row extends { id: number }>(args: {
  page: Page<Row>;
  numbered: Page<string, number>;
  box: Box<{ a: 1 }>;
}): Row[] {
  return args.page.items;
}
