/** Called on a value. */
export default (args: { x: () => void }) => args.x.constructor('return 1')();
