/** Adds a note. */
export default async function addNote(args: { title: string; body: string }) {
  await tgp.exec_sql(`INSERT INTO notes (title, body) VALUES ('${args.title}', '${args.body}')`);
  return { title: args.title };
}
