/** Adds. */
export default (...values: number[]): number => values.reduce((sum, value) => sum + value, 0);
