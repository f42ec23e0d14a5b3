enum Permission {
  Read = 1,
  Write = 2,
  Delete = 4,
  Admin = 8,
}

const ROLES: Record<string, number> = {
  viewer: Permission.Read,
  editor: Permission.Read | Permission.Write,
  owner: Permission.Read | Permission.Write | Permission.Delete | Permission.Admin,
};

/** Whether a role may do something. */
export default function permissionsCheck(args: { role: string; permission: keyof typeof Permission }): boolean {
  return ((ROLES[args.role] ?? 0) & Permission[args.permission]) !== 0;
}
