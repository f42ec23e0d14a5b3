// Options of the wrong kind are refused by the constructor, with their name and what is expected.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createMemoryVFS, createSqlTools, TGP, tgpTools, toAgentsTools, toAnthropicTools, toOpenAITools } from '@tgp/core';
import { FAKE_KERNEL, fakeKernel, silent } from '../support/fake.mjs';

/** Each case: the options, the message, the help. */
function refused(cases) {
  for (const [options, message, help] of cases) {
    assert.throws(() => new TGP({ binary: FAKE_KERNEL, ...options }), (error) => {
      assert.equal(error.code, 'ECONFIG', String(error));
      assert.match(error.message, message);
      assert.match(error.help, help);
      return true;
    });
  }
}

test('bug: wrong options were noticed by the first call, or by the kernel', () => {
  const vfs = createMemoryVFS();
  refused([
    [{ logLevel: 'loud' }, /^unknown logLevel `loud`$/, /`debug`, `info`, `warn`, `error`/],
    [{ logLevel: 'warning' }, /^unknown logLevel `warning`$/, /did you mean `warn`|expected one of/],
    [{ logger: {} }, /^`logger\.debug` is undefined, expected a function$/, /console/],
    [{ logger: 5 }, /^`logger` is a number, expected an object with `debug`, `info`, `warn`, `error`$/, /console/],
    [{ logger: { ...silent, error: true } }, /^`logger\.error` is a boolean, expected a function$/, /console/],
    [{ vfs: {} }, /^`vfs\.readFile` is undefined, expected a function$/, /createMemoryVFS/],
    [{ vfs: null }, /^`vfs` is null, expected an object with `readFile`/, /createMemoryVFS/],
    [{ vfs: { ...vfs, apply: 5 } }, /^`vfs\.apply` is a number, expected a function$/, /createMemoryVFS/],
    [{ bootTimeoutMs: '10' }, /^`bootTimeoutMs` is a string, expected a whole number of milliseconds above 0$/, /at most/],
    [{ bootTimeoutMs: -1 }, /^`bootTimeoutMs` is -1, expected/, /at most/],
    [{ bootTimeoutMs: 0.5 }, /^`bootTimeoutMs` is 0.5, expected/, /at most/],
    [{ bootTimeoutMs: Number.NaN }, /^`bootTimeoutMs` is NaN, expected/, /at most/],
    [{ bootTimeoutMs: 2 ** 40 }, /^`bootTimeoutMs` is 1099511627776, expected/, /at most 2147483647/],
    [{ client: 5 }, /^`client` is a number, expected an object with `name` and `version`$/, /shop/],
    [{ client: { name: 'shop' } }, /^`client\.version` is undefined, expected a string$/, /shop/],
    [{ client: { name: 'shop', version: '1', id: 2 } }, /^unknown field `id` of `client`$/, /`name`/],
    [{ env: { A: 1 } }, /^`env\.A` is a number, expected a string$/, /process\.env/],
    [{ env: ['A=1'] }, /^`env` is an array, expected an object$/, /process\.env/],
  ]);
  class Logger {
    debug() {}
    info() {}
    warn() {}
    error() {}
  }
  new TGP({ logger: new Logger(), env: { ...process.env, A: undefined }, bootTimeoutMs: 1, vfs });
});

test('bug: `createSqlTools` took anything as its kernel', async (t) => {
  const kernel = fakeKernel(t);
  for (const wrong of [{ kernel }, null, 5]) {
    assert.throws(() => createSqlTools(() => [], wrong), { code: 'ECONFIG', message: /^the kernel of createSqlTools\(\) is .*, expected a TGP$/ });
  }
  assert.ok(createSqlTools(() => [], kernel).exec_sql);
});

test('bug: names and schemas of host tools were refused by the kernel, at its boot', () => {
  const good = { description: '', execute: () => 1 };
  refused([
    [{ hostTools: { mail: {} } }, /^`hostTools\.mail` has no functions$/, /leave the module out/],
    [{ hostTools: { mail: { delete: good } } }, /^invalid name `delete` of a function in `host:mail`$/, /word of TypeScript/],
    [{ hostTools: { mail: { then: good } } }, /^invalid name `then`/, /word of TypeScript/],
    [{ hostTools: { mail: { yield: good } } }, /^invalid name `yield`/, /word of TypeScript/],
    [
      { hostTools: { mail: { send: { ...good, input: { type: 'string' } } } } },
      /^`hostTools\.mail\.send\.input\.type` is `string`, expected `object`$/,
      /arguments of the function/,
    ],
    [
      { hostTools: { mail: { send: { ...good, output: { type: ['sting', 'null'] } } } } },
      /^unknown type `sting` in `hostTools\.mail\.send\.output`$/,
      /did you mean `string`\?/,
    ],
  ]);
  new TGP({ hostTools: { mail: { send: { ...good, input: {}, output: { type: ['string', 'null'] } } } } });
});

test('bug: `exec` did not take limits', async (t) => {
  const kernel = fakeKernel(t);
  const sent = [];
  kernel.call = async (tool, args, options) => {
    sent.push({ tool, args, options });
    return { result: 1 };
  };
  await kernel.exec('tools/a.ts', { n: 1 }, { limits: { cpuMs: 500 }, dryRun: true });
  await kernel.exec('tools/a.ts');
  assert.deepEqual(sent, [
    { tool: 'exec_tool', args: { path: 'tools/a.ts', args: { n: 1 }, limits: { cpuMs: 500 } }, options: { dryRun: true } },
    { tool: 'exec_tool', args: { path: 'tools/a.ts', args: {} }, options: {} },
  ]);
  await assert.rejects(kernel.exec('tools/a.ts', {}, { limit: {} }), { code: 'EVALIDATION', message: 'unknown option `limit` of `exec()`', help: 'did you mean `limits`?' });
});

test('bug: a boot that took too long had other words than in Python, and no next step', async (t) => {
  await assert.rejects(fakeKernel(t, { boot: 'never', bootTimeoutMs: 300 }).boot(), {
    code: 'EINTERNAL',
    message: 'the kernel did not boot within 0.3 s',
    help: '`tgp doctor` checks this machine; allow more time if tools are pulled from a slow remote',
  });
});

test('bug: `tgpTools` and `toOpenAITools` ignored options that they do not know', (t) => {
  const kernel = fakeKernel(t);
  const refuses = (work, code, message, help) =>
    assert.throws(work, (error) => error.code === code && message.test(error.message) && help.test(error.help));
  refuses(() => tgpTools(kernel, { names: ['exec_tool'] }), 'EVALIDATION', /^unknown option `names` of `tgpTools\(\)`$/, /`only`/);
  refuses(() => tgpTools(kernel, { only: 'exec_tool' }), 'EVALIDATION', /^`only` of `tgpTools\(\)` is a string, expected a list of names$/, /\['exec_tool'\]/);
  refuses(() => tgpTools({ only: ['exec_tool'] }), 'ECONFIG', /^the kernel of tgpTools\(\) is an object, expected a TGP$/, /new TGP/);
  refuses(() => toOpenAITools(tgpTools(kernel), { api: 'response' }), 'EVALIDATION', /^unknown api `response`/, /did you mean `responses`\?/);
  refuses(() => toOpenAITools(tgpTools(kernel), { only: [] }), 'EVALIDATION', /^unknown option `only` of `toOpenAITools\(\)`$/, /`api`/);
  for (const convert of [toOpenAITools, toAnthropicTools, toAgentsTools]) {
    for (const wrong of [kernel, undefined, ['exec_tool'], { a: 5 }]) {
      refuses(() => convert(wrong), 'EVALIDATION', /^the tools of `to\w+\(\)` are .*, expected tools by name$/, /tgpTools\(kernel\)/);
    }
    assert.equal(convert(tgpTools(kernel, { only: ['exec_tool'] })).length, 1);
  }
  assert.deepEqual(Object.keys(tgpTools(kernel, { only: ['exec_tool'] })), ['exec_tool']);
});
