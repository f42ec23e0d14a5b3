enum Key {
  Maker = 'constructor',
}
const key = () => 'construct' + 'or';
function other() {
  return 'constructor';
}

/** The key is behind an enum, a function, a call. */
export default (args: { x: () => void }) => [args.x[Key.Maker], args.x[key()], args.x[other()], args.x[(() => 'constructor')()]];
