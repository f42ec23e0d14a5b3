/** Removes the password of a user record. */
export default function stripPassword(args: { user: Record<string, unknown> }) {
  delete args.user.password;
  return args.user;
}
