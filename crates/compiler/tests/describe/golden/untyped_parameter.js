/** Joins the names of people. */
export default function names(people, separator = ', ') {
  return people.map((person) => person.name).join(separator) + people.length;
}
