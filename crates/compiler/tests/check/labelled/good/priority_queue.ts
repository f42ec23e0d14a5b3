class MinHeap<Item> {
  private readonly items: { key: number; item: Item }[] = [];

  get size(): number {
    return this.items.length;
  }

  push(key: number, item: Item): void {
    this.items.push({ key, item });
    let index = this.items.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.items[parent].key <= this.items[index].key) break;
      [this.items[parent], this.items[index]] = [this.items[index], this.items[parent]];
      index = parent;
    }
  }

  pop(): Item | undefined {
    const top = this.items[0];
    const last = this.items.pop();
    if (!top || !last) return undefined;
    if (this.items.length > 0) {
      this.items[0] = last;
      let index = 0;
      for (;;) {
        const left = 2 * index + 1;
        const right = left + 1;
        let smallest = index;
        if (left < this.items.length && this.items[left].key < this.items[smallest].key) smallest = left;
        if (right < this.items.length && this.items[right].key < this.items[smallest].key) smallest = right;
        if (smallest === index) break;
        [this.items[smallest], this.items[index]] = [this.items[index], this.items[smallest]];
        index = smallest;
      }
    }
    return top.item;
  }
}

/** Orders jobs by their due time with a binary heap. */
export default function priorityQueue(args: { jobs: { name: string; due: number }[] }): string[] {
  const heap = new MinHeap<string>();
  for (const job of args.jobs) heap.push(job.due, job.name);
  const order: string[] = [];
  while (heap.size > 0) order.push(heap.pop() as string);
  return order;
}
