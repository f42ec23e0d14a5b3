/** Lists tasks. */
export default async function listTasks(args: { order?: 'due' | 'priority' }) {
  let orderBy: string;
  switch (args.order) {
    case 'priority':
      orderBy = 'priority DESC, due ASC';
      break;
    default:
      orderBy = 'due ASC';
  }
  return tgp.exec_sql(`SELECT * FROM tasks ORDER BY ${orderBy}`);
}
