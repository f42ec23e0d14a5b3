// The package: entries, the list of kernels, where the program is found, the formats of tools.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import * as esm from '@tgp/core';
import { FAKE_KERNEL, fakeKernel } from '../support/fake.mjs';

const require = createRequire(import.meta.url);
const cjs = require('@tgp/core');
const { findBinary, platformPackage } = require('../../dist/process/binary.js');

test('both entries export the same things', () => {
  assert.deepEqual(Object.keys(esm).filter((name) => name !== 'default' && name !== 'module.exports').sort(), Object.keys(cjs).sort());
  for (const [name, value] of Object.entries(cjs)) assert.equal(esm[name], value, name);
});

test('the version is that of the manifest', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  assert.equal(esm.VERSION, manifest.version);
  assert.deepEqual(manifest.dependencies, { tgp: manifest.version });
});

test('the page of the API is that of the declarations', () => {
  const script = fileURLToPath(new URL('../../scripts/api.mjs', import.meta.url));
  execFileSync(process.execPath, [script, '--check'], { stdio: ['ignore', 'ignore', 'inherit'] });
});

test('createSqlTools needs one kernel, or its name', async (t) => {
  const executor = Object.assign(async () => [], { dialect: 'sqlite' });
  const code = (code, pattern) => (error) => error.code === code && pattern.test(error.message);
  assert.throws(() => esm.createSqlTools(executor), code('ECONFIG', /no kernel/));
  const first = fakeKernel(t);
  assert.deepEqual(Object.keys(cjs.createSqlTools(executor)), ['exec_sql'], 'a kernel of the other entry is found');
  assert.deepEqual(Object.keys(esm.createSqlTools(executor)), ['exec_sql'], 'once more, as in a request handler');
  assert.throws(() => esm.createSqlTools(async () => []), code('ECONFLICT', /another database/));
  const second = fakeKernel(t);
  assert.throws(() => esm.createSqlTools(executor), code('ECONFIG', /2 kernels/));
  esm.createSqlTools(executor, second);
  await second.shutdown();
  esm.createSqlTools(executor);
  await first.shutdown();
  assert.throws(() => esm.createSqlTools(executor), code('ECONFIG', /no kernel/));
  assert.throws(() => esm.createSqlTools(async () => [], first), code('ESTATE', /the kernel was shut down/));
  const third = fakeKernel(t);
  assert.throws(() => esm.createSqlTools({}, third), code('ECONFIG', /an object is not a database connection/));
});

test('SQL that is bound after the boot restarts the kernel after its calls', async (t) => {
  const kernel = fakeKernel(t);
  const { pid, params } = await kernel.call('environment');
  assert.equal(params.host.sql, undefined);
  const slow = kernel.call('later', { ms: 100, value: 'finished' });
  await kernel.call('echo');
  esm.createSqlTools(Object.assign(async () => [], { dialect: 'sqlite' }), kernel);
  const next = await kernel.call('environment');
  assert.notEqual(next.pid, pid);
  assert.equal(next.params.host.sql.dialect, 'sqlite');
  assert.equal(await slow, 'finished');
});

test('where the program is found', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'tgp-find-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const program = (...path) => {
    const file = join(directory, ...path);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, '#!/bin/sh\n');
    chmodSync(file, 0o755);
    return file;
  };
  const find = (options) => findBinary({ environment: {}, bases: [join(directory, 'package.json')], ...options });
  assert.throws(find, (error) => {
    assert.equal(error.code, 'ECAPABILITY');
    assert.match(error.help, new RegExp(`install the package \`${platformPackage()}\`.*TGP_BIN`));
    return true;
  });
  const onPath = program('path', 'tgp');
  const PATH = `/nowhere:${join(directory, 'path')}`;
  assert.equal(find({ environment: { PATH } }), onPath);
  const manifest = (...path) => writeFileSync(join(directory, ...path, 'package.json'), '{}');
  // As pnpm lays it out: each package sees only its own dependencies.
  const store = (name) => join('node_modules', '.store', name, 'node_modules');
  const platform = program(store('tgp'), platformPackage(), 'bin', 'tgp');
  mkdirSync(join(directory, store('tgp'), 'tgp'), { recursive: true });
  manifest(store('tgp'), 'tgp');
  mkdirSync(join(directory, store('core'), '@tgp', 'core'), { recursive: true });
  manifest(store('core'), '@tgp', 'core');
  symlinkSync(join(directory, store('tgp'), 'tgp'), join(directory, store('core'), 'tgp'));
  mkdirSync(join(directory, 'node_modules', '@tgp'));
  symlinkSync(join(directory, store('core'), '@tgp', 'core'), join(directory, 'node_modules', '@tgp', 'core'));
  assert.equal(find({ environment: { PATH } }), platform);
  const named = program('named');
  assert.equal(find({ environment: { PATH, TGP_BIN: named } }), named);
  assert.equal(find({ binary: FAKE_KERNEL, environment: { TGP_BIN: named } }), FAKE_KERNEL);
  assert.throws(() => find({ environment: { TGP_BIN: directory } }), /`TGP_BIN` names .* not an executable file/);
});

test('a kernel without a program fails clearly', async (t) => {
  await assert.rejects(fakeKernel(t, { binary: '/nowhere/tgp' }).boot(), { code: 'ECAPABILITY' });
  await assert.rejects(fakeKernel(t, { directory: '/nowhere' }).boot(), { code: 'ECONFIG', message: /`\/nowhere` is not a directory/ });
});

test('the project is the directory of the configuration file', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'tgp-project-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const configFile = join(directory, 'tgp.config.ts');
  writeFileSync(configFile, 'export default {};\n');
  const { params } = await fakeKernel(t, { configFile }).call('environment');
  assert.equal(params.host.directory, directory);
  assert.equal(params.host.configFile, configFile);
});

test('tools in the formats of providers', async (t) => {
  const kernel = fakeKernel(t);
  const tools = esm.tgpTools(kernel);
  assert.deepEqual(Object.keys(tools), ['search', 'list_files', 'read_file', 'write_file', 'patch_file', 'check_tool', 'test_tool', 'exec_tool']);
  assert.equal(esm.formatTools(tools), tools);
  const [openai] = esm.toOpenAITools(tools);
  assert.equal(openai.type, 'function');
  assert.equal(openai.function.name, 'search');
  assert.equal(openai.function.parameters.type, 'object');
  assert.equal(esm.toOpenAITools(tools, { api: 'responses' })[0].name, 'search');
  assert.equal(esm.toAnthropicTools(tools)[0].input_schema.type, 'object');
  assert.deepEqual(Object.keys(esm.tgpTools(kernel, { only: ['fs_read'] })), ['fs_read']);
  assert.throws(() => esm.tgpTools(kernel, { only: ['no_such_tool'] }), { code: 'ENOTFOUND' });
});

test('a call of a model is run, and its failure is a result', async (t) => {
  const kernel = fakeKernel(t);
  const tool = (name) => ({ ...esm.tgpTools(kernel).search, execute: (input, { signal }) => kernel.call(name, input, { signal }) });
  const tools = { echo: tool('echo'), fail: tool('fail'), hang: tool('hang') };
  assert.deepEqual(await esm.executeToolCall(tools, 'echo', '{"a":1}'), { content: '{"a":1}', isError: false });
  assert.deepEqual(await esm.executeToolCall(tools, 'fail', {}), {
    content: 'ECOMPILE: it does not compile\nat tools/a.ts:3:7\nhelp: close the brace\ndetails: {"field":"content"}',
    isError: true,
  });
  assert.match((await esm.executeToolCall(tools, 'echo', '{')).content, /^EVALIDATION: the arguments of `echo` are not JSON/);
  assert.match((await esm.executeToolCall(tools, 'toString', {})).content, /^ENOTFOUND/);
  const signal = AbortSignal.timeout(20);
  await assert.rejects(esm.executeToolCall(tools, 'hang', {}, { signal }), { name: 'TimeoutError' });
});
