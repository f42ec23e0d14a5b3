/** The constructor by reflection. */
export default (args: { f: () => void }) => Reflect.get(args.f, 'constructor')('return 1');
