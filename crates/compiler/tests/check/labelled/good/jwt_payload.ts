/** Decodes the payload of a JWT without checking its signature. */
export default function jwtPayload(args: { token: string }): Record<string, unknown> {
  const [, payload] = args.token.split('.');
  if (!payload) throw new Error('not a JWT: expected three parts joined by dots');
  return JSON.parse(atob(payload.replace(/-/g, '+').replace(/_/g, '/'))) as Record<string, unknown>;
}
