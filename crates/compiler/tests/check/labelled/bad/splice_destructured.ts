/** Takes the first items off a list. */
export default function takeFirst({ items, count }: { items: string[]; count: number }): string[] {
  return items.splice(0, count);
}
