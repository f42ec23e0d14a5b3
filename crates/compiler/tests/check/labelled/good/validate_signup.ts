interface Signup {
  email: string;
  password: string;
  age: number;
}

/** Checks a sign-up form and lists what is wrong with it. */
export default function validateSignup(args: { form: Partial<Signup>; minAge?: number; minPasswordLength?: number }): { valid: boolean; errors: Record<string, string> } {
  const { form, minAge = 18, minPasswordLength = 12 } = args;
  const errors: Record<string, string> = {};
  if (!form.email || !/^\S+@\S+\.\S+$/.test(form.email)) errors.email = 'must be an address such as jane@example.com';
  if (!form.password || form.password.length < minPasswordLength) errors.password = `must have at least ${minPasswordLength} characters`;
  if (form.age === undefined || form.age < minAge) errors.age = `must be at least ${minAge}`;
  return { valid: Object.keys(errors).length === 0, errors };
}
