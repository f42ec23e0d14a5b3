const password = 'Summer2024!';

/** The login request of the shop. */
export default (args: { user: string }) => ({ user: args.user, password });
