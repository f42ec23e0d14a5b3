/** A namespace of a script is made once. */
namespace Store {
  export const items: string[] = [];
  export const add = (item: string): number => items.push(item);
}
return Store.add(args.item);
