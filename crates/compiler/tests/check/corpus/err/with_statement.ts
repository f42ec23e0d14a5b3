/** Names that mean anything, in sloppy code. */
module.exports = function tool(args: { scope: object }): number {
  with (args.scope) {
    return 1;
  }
};
