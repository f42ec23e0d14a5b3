/** Validates an age. */
export default function validAge(args: { age: unknown }): boolean {
  return z.number().int().min(0).safeParse(args.age).success;
}
