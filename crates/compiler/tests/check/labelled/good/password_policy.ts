interface Policy { minLength: number; requireDigit: boolean }
const DEFAULT_POLICY: Policy = { minLength: 12, requireDigit: true };
/** Checks a password against a policy. */
export default function checkPassword({ password, policy = DEFAULT_POLICY }: { password: string; policy?: Policy }): string[] {
  const problems: string[] = [];
  if (password.length < policy.minLength) problems.push(`at least ${policy.minLength} characters`);
  if (policy.requireDigit && !/\d/.test(password)) problems.push('at least one digit');
  return problems;
}
