/** Greets by name. */
const greeting = `Hello, ${args.name}`;
greeting.toUpperCase();
