/** Whatever the caller names. */
module.exports = (args: { name: string }) => require(args.name);
