/** Dimensional weight with the divisor written in. */
export default (args: { l: number; w: number; h: number }) => (args.l * args.w * args.h) / 139;
