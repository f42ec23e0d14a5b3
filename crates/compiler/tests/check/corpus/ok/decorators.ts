const logged = (target: (...values: number[]) => number) => target;

class Calculator {
  @logged
  add(left: number, right: number): number {
    return left + right;
  }
}

/** Adds with a decorated method. */
export default (args: { left: number; right: number }): number => new Calculator().add(args.left, args.right);
