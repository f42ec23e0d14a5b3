import { chunk } from '@tgp/std';

const BATCH_SIZE = 200;

/** Inserts measurements in batches. */
export default async function batchInsert(args: { measurements: { sensor: string; at: string; value: number }[] }): Promise<number> {
  let inserted = 0;
  for (const batch of chunk(args.measurements, BATCH_SIZE)) {
    const values = batch.map(() => '(?, ?, ?)').join(', ');
    const params = batch.flatMap((m) => [m.sensor, m.at, m.value]);
    const result = await tgp.exec_sql(`INSERT INTO measurements (sensor, at, value) VALUES ${values}`, params);
    inserted += result.changed;
  }
  return inserted;
}
