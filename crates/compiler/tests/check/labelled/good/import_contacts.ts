import { parseCsv } from '@tgp/std';

/** Inserts the contacts of a CSV text and reports how many were new. */
export default async function importContacts(args: { csv: string }): Promise<{ inserted: number; skipped: number }> {
  let inserted = 0;
  let skipped = 0;
  for (const row of parseCsv(args.csv)) {
    const known = await tgp.exec_sql('SELECT 1 FROM contacts WHERE email = ?', [row.email]);
    if (known.length > 0) {
      skipped++;
      continue;
    }
    await tgp.exec_sql('INSERT INTO contacts (name, email) VALUES (?, ?)', [row.name, row.email]);
    inserted++;
  }
  return { inserted, skipped };
}
