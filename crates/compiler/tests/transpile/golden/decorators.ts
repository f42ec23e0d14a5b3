const seen: string[] = [];
const mark = (target: object, key?: string | symbol, place?: unknown): void => { seen.push(String(key ?? 'class') + (typeof place === 'number' ? place : '')); };
@mark
class Service {
  @mark field = 1;
  @mark method(@mark first: number): number { return first + this.field; }
}
export default () => [new Service().method(1), seen];
