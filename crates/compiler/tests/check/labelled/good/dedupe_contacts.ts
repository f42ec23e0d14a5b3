interface Contact {
  email: string;
  name: string;
  updated: string;
}

/** Keeps the newest record of every e-mail address. */
export default function dedupeContacts(args: { contacts: Contact[] }): Contact[] {
  const newest = new Map<string, Contact>();
  for (const contact of args.contacts) {
    const key = contact.email.trim().toLowerCase();
    const known = newest.get(key);
    if (!known || known.updated < contact.updated) newest.set(key, contact);
  }
  return [...newest.values()];
}
