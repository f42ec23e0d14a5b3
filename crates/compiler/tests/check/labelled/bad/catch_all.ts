/** Deletes a user. */
export default async function deleteUser(args: { id: string }) {
  try {
    await tgp.exec_sql('DELETE FROM users WHERE id = ?', [args.id]);
  } catch (error) {
    console.error(error);
  }
  return { ok: true };
}
