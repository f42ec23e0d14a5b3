class Stack<T> {
  static readonly empty = 'empty';
  #items: T[] = [];
  push(item: T): this {
    this.#items.push(item);
    return this;
  }
  pop(): T | undefined {
    return this.#items.pop();
  }
  clone(): Stack<T> {
    return new (this.constructor as new () => Stack<T>)();
  }
}

/** Checks that brackets are balanced. */
export default function balanced(args: { text: string; pairs?: Record<string, string> }): boolean {
  const pairs = args.pairs ?? { ')': '(', ']': '[' };
  const stack = new Stack<string>();
  for (const character of args.text) {
    if (Object.values(pairs).includes(character)) stack.push(character);
    else if (character in pairs && stack.pop() !== pairs[character]) return false;
  }
  return stack.pop() === undefined;
}
