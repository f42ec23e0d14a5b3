/** The connection string of a database. */
export default function connection(args: { database: string }): string {
  return `postgres://admin:s3cretPassw0rd@db.internal:5432/${args.database}`;
}
