/** Prints the names in args.people. */
const names = args.people.map((person: { name: string }) => person.name);
console.log(names.join(', '));
