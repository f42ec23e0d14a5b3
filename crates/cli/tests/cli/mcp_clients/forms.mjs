// What a client that shows forms does: a person agrees, accepts without a choice, and declines.
import assert from 'node:assert/strict';

/** Answers forms as `person.answer` says. */
export const person = {
  shown: [],
  answer: () => ({ action: 'cancel' }),
  async show(form) {
    this.shown.push(form);
    return this.answer(form);
  },
};

const agreed = (form) => {
  assert.deepEqual(form.requestedSchema.required, ['choice']);
  return { action: 'accept', content: { choice: form.requestedSchema.properties.choice.enum[1] } };
};

/** `call(arguments)` calls the tool `run`. */
export async function forms({ call }) {
  person.answer = agreed;
  const done = await call({ code: 'return 6 * 7;' });
  assert.notEqual(done.isError, true, done.content[0].text);
  assert.equal(JSON.parse(done.content[0].text).result, 42);
  assert.equal(person.shown.length, 1);
  assert.match(person.shown[0].message, /return 6 \* 7;/);

  person.answer = () => ({ action: 'accept', content: {} });
  const empty = await call({ code: 'return 1;' }).catch((error) => ({ isError: true, content: [{ text: String(error) }] }));
  assert.equal(empty.isError, true);

  person.answer = () => ({ action: 'decline' });
  const declined = await call({ code: 'return 2;' });
  assert.equal(declined.isError, true);
  assert.match(declined.content[0].text, /EAPPROVAL.*declined/);
}
