/** Groups people by city. */
export default function byCity(args: { people: { name: string; city: string }[] }) {
  return groupBy(args.people, (person) => person.city);
}
