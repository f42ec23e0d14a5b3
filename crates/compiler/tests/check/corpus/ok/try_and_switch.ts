type Operation = 'add' | 'subtract';

/** Every path returns or throws. */
export default function calculate(args: { operation: Operation; a: number; b: number }): number {
  try {
    switch (args.operation) {
      case 'add':
        return args.a + args.b;
      case 'subtract':
        return args.a - args.b;
      default:
        throw new Error(`unknown operation ${String(args.operation)}`);
    }
  } catch (error) {
    throw new Error('calculation failed', { cause: error });
  }
}
