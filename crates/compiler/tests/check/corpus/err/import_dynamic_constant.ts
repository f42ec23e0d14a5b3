const name = './other';

/** A constant, but not a literal. */
export default async () => import(name);
