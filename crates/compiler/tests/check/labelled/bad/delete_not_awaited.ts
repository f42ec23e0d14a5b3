/** Removes expired sessions. */
export default async function removeExpired(args: { before: string }): Promise<{ ok: boolean }> {
  tgp.exec_sql('DELETE FROM sessions WHERE expires_at < ?', [args.before]);
  return { ok: true };
}
