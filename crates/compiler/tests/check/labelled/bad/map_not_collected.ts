/** Writes one file per report. */
export default async function writeReports(args: { reports: { name: string; text: string }[]; folder: string }) {
  args.reports.map((report) => tgp.write_file(`${args.folder}/${report.name}.txt`, report.text));
  return { written: args.reports.length };
}
