/** Doubles a number. */
export default (value: number) => value > 1;
