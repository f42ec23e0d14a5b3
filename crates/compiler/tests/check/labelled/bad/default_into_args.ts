/** Greets someone. */
export default function greet(args: { name: string; greeting?: string }): string {
  args.greeting = args.greeting || 'Hello';
  return `${args.greeting}, ${args.name}!`;
}
