/** Scores a password from 0 to 4 by length and variety. */
export default function passwordStrength(args: { password: string }): { score: number; hints: string[] } {
  const checks: [boolean, string][] = [
    [args.password.length >= 12, 'use at least 12 characters'],
    [/[a-z]/.test(args.password) && /[A-Z]/.test(args.password), 'mix upper and lower case'],
    [/\d/.test(args.password), 'add a digit'],
    [/[^\w\s]/.test(args.password), 'add a symbol'],
  ];
  return {
    score: checks.filter(([passed]) => passed).length,
    hints: checks.filter(([passed]) => !passed).map(([, hint]) => hint),
  };
}
