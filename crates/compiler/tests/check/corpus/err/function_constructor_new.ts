/** Called with new. */
export default (args: { x: object }) => new args.x.constructor('return 1');
