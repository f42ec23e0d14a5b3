class Registry {
  static items: string[] = [];
}

/** Registers a name. */
export default function register(args: { name: string }): number {
  Registry.items.push(args.name);
  return Registry.items.length;
}
