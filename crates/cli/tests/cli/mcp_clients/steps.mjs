// What every official TypeScript client does with the server: list, call, forge, call the new tool, bad arguments,
// cancel an endless run, an approval that is missing, and a hundred calls at once.
import assert from 'node:assert/strict';

const TEST = `import { expect, test } from '@tgp/test';
import triple from './triple.ts';
test('triples', () => expect(triple({ n: 2 })).toBe(6));
`;
const SOURCE = `/** Three times a number. */
export default function triple(args: { n: number }): number {
  return args.n * 3;
}
`;

const handle = (result) => {
  const [, run] = /^\{"run":"(r[0-9a-f]+)","state":"running"/.exec(text(result)) ?? [];
  return run;
};
const text = (result) => result.content[0].text;
const data = (result) => {
  assert.notEqual(result.isError, true, text(result));
  return JSON.parse(text(result));
};

/** `callOnce(name, arguments, options)` calls a tool. */
export async function steps({ client, callOnce }) {
  // A slow machine answers with a handle after 20 s.
  const call = async (name, args, options) => {
    let result = await callOnce(name, args, options);
    for (let run; (run = handle(result)); ) result = await callOnce('wait', { run });
    return result;
  };
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map((tool) => tool.name),
    ['search', 'describe', 'run', 'forge', 'wait', 'approval', 'graph'],
  );
  assert.equal(data(await call('run', { code: 'return 6 * 7;' })).result, 42);

  const name = 'clients/triple';
  const forged = data(await call('forge', { name, test: TEST, source: SOURCE }));
  assert.equal(forged.green.failed, 0);
  assert.equal(data(await call('run', { tool: name, args: { n: 14 } })).result, 42);

  const wrong = await call('run', { tool: name, args: { n: 'two' } });
  assert.equal(wrong.isError, true);
  assert.match(text(wrong), /EVALIDATION/);
  await assert.rejects(call('no_such', {}), /unknown tool/);

  const stop = new AbortController();
  const endless = { code: 'while (true) { await new Promise((done) => setTimeout(done, 5)); }' };
  const begun = Date.now();
  const running = call('run', endless, { signal: stop.signal });
  setTimeout(() => stop.abort(new Error('stopped by the test')), 300);
  await assert.rejects(running);
  assert.ok(Date.now() - begun < 5_000);

  const many = Array.from({ length: 100 }, (_, n) => call('run', { code: 'return args.n + 1;', args: { n } }));
  const answers = await Promise.all(many);
  answers.forEach((answer, n) => assert.equal(data(answer).result, n + 1));

  const { resources } = await client.listResources();
  assert.ok(resources.some((resource) => resource.uri === 'tgp://audit'));
  const audit = await client.readResource({ uri: 'tgp://audit' });
  assert.match(audit.contents[0].text, /exec_code/);
  const { prompts } = await client.listPrompts();
  assert.deepEqual(prompts.map((prompt) => prompt.name), ['forge_tool', 'review_plan']);
}
