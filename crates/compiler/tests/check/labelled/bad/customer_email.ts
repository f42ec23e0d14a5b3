/** Sends the weekly report. */
export default function weeklyReport(args: { body: string }) {
  return { to: 'maria.schneider@kundengruppe.de', subject: 'Weekly report', body: args.body };
}
