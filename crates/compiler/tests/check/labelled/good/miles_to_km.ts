/** Converts miles to kilometres. */
export default (args: { miles: number }): number => args.miles * 1.609344;
