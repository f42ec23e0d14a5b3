const apiKey = 'a1b2c3d4e5';

/** Passwords in the source. */
export default (args: { dsn?: string }) => [
  args.dsn ?? 'postgres://app:hunter2@db.internal/app',
  'https://api.internal/v1?api_key=abc12345',
  { password: 'hunter2hunter2' },
  apiKey,
];
