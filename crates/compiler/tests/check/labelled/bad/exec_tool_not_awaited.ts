/** Runs the nightly clean-up. */
export default async function nightly(args: { dryRun?: boolean }) {
  if (!args.dryRun) {
    tgp.exec_tool('tools/delete_old_logs.ts', { days: 30 });
  }
  return { started: true };
}
