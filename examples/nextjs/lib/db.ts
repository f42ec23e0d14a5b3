import { DatabaseSync } from 'node:sqlite';

// A pool of `pg` or `mysql2` is passed to `createSqlTools` in the same way.
export const myDbExecutor = new DatabaseSync(process.env.DATABASE_FILE ?? 'shop.db');
myDbExecutor.exec('CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total INTEGER NOT NULL)');
