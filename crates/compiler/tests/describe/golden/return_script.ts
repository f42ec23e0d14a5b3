// tools/return_script.ts
// Greets a person by name.
// Polite by default.

// Not part of the description.
const { name, greeting = 'Hello', punctuation = { mark: '!' } } = args;
if (!name) return { ok: false, text: '' };
return { ok: true, text: `${greeting}, ${name}${punctuation.mark}` };
