/** Marks users as active. */
export default function activate(args: { users: { name: string; active?: boolean }[] }) {
  args.users.forEach((user) => {
    user.active = true;
  });
  return args.users;
}
