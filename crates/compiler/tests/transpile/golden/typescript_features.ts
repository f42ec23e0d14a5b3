const enum Direction { Up, Down = 'down' }
namespace Geometry {
  export const origin = [0, 0] as const;
  export namespace Deep { export function name() { return 'deep'; } }
}
abstract class Base<T> {
  declare ghost: string;
  static count = 0;
  #secret = 1;
  constructor(protected readonly value: T, public name?: string) { Base.count++; }
  abstract describe(): string;
  get secret(): number { return this.#secret; }
}
class Child extends Base<number> {
  override describe(): string { return `${this.name ?? 'none'}:${this.value}`; }
}
function over(a: string): string;
function over(a: number): number;
function over(a: unknown): unknown { return a; }
const assertion = <string>over('x');
const nonNull = [1, 2].find((n): n is 2 => n === 2)!;
const config = { a: 1 } satisfies Record<string, number>;
using resource = { [Symbol.dispose]() {} };
export default (args?: { deep?: { n: number } }) => [
  Direction.Up, Direction.Down, Geometry.origin, Geometry.Deep.name(), new Child(1, 'c').describe(),
  new Child(2).secret, over(3), assertion, nonNull, config, args?.deep?.n, 10n ** 2n, /(?<year>\d{4})/v.test('2024'),
];
