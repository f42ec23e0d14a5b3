/** Not a tool that can be called. */
export default class Calculator {
  add(left: number, right: number): number {
    return left + right;
  }
}
