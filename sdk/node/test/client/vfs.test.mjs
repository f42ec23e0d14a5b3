// Both virtual file systems do the same.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { createMemoryVFS, createNodeVFS } from '@tgp/core';

const bytes = (text) => Buffer.from(text);

for (const kind of ['memory', 'node']) {
  test(`${kind}: files, directories and changes`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'tgp-vfs-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const vfs = kind === 'memory' ? createMemoryVFS() : createNodeVFS(directory);
    await vfs.writeFile('tools/math/fib.ts', 'fib');
    await vfs.writeFile('/tools/./ü.ts', bytes([0xff, 0x00]));
    assert.equal(await vfs.readFile('tools/math/fib.ts'), 'fib');
    assert.deepEqual([...(await vfs.readBytes('tools/ü.ts'))], [...bytes([0xff, 0x00])]);
    assert.deepEqual(await vfs.listFiles('tools'), ['tools/ü.ts']);
    assert.deepEqual(await vfs.listFiles('', true), ['tools/math/fib.ts', 'tools/ü.ts']);
    assert.deepEqual(await vfs.entries('tools'), [
      { path: 'tools/math', directory: true, size: 0 },
      { path: 'tools/math/fib.ts', directory: false, size: 3 },
      { path: 'tools/ü.ts', directory: false, size: 2 },
    ]);
    assert.equal(await vfs.exists('tools/math'), true);
    assert.equal(await vfs.readBytes('tools/math'), undefined);
    assert.equal(await vfs.entry('tools/math/fib.ts/x'), undefined);
    await assert.rejects(vfs.readFile('nothing'), { code: 'ENOTFOUND' });
    await vfs.remove('nothing');
    const changes = [
      { path: 'tools/math/fib.ts', content: bytes('new') },
      { path: 'tools/ü.ts', content: undefined },
      { path: 'tools/math', content: bytes('a directory is here') },
    ];
    await assert.rejects(vfs.apply(changes));
    assert.equal(await vfs.readFile('tools/math/fib.ts'), 'fib', 'all or none');
    assert.equal(await vfs.exists('tools/ü.ts'), true);
    await vfs.apply(changes.slice(0, 2));
    assert.equal(await vfs.readFile('tools/math/fib.ts'), 'new');
    assert.deepEqual(await vfs.listFiles('', true), ['tools/math/fib.ts']);
    for (const path of ['../x', 'a/../../x', 'a\\b', 'a\0']) {
      await assert.rejects(vfs.readFile(path), { code: 'ESECURITY' }, path);
      await assert.rejects(vfs.writeFile(path, ''), { code: 'ESECURITY' }, path);
    }
  });
}

test('node: a link does not lead out, and nothing is left of a failed write', async (t) => {
  const outside = mkdtempSync(join(tmpdir(), 'tgp-outside-'));
  const directory = mkdtempSync(join(tmpdir(), 'tgp-vfs-'));
  t.after(() => [outside, directory].forEach((path) => rmSync(path, { recursive: true })));
  writeFileSync(join(outside, 'secret'), 'secret');
  symlinkSync(outside, join(directory, 'link'));
  symlinkSync(join(outside, 'secret'), join(directory, 'file'));
  const vfs = createNodeVFS(directory);
  for (const path of ['link/secret', 'file']) {
    await assert.rejects(vfs.readFile(path), { code: 'ESECURITY' });
    await assert.rejects(vfs.writeFile(path, 'x'), { code: 'ESECURITY' });
    await assert.rejects(vfs.remove(path), { code: 'ESECURITY' });
  }
  assert.deepEqual(await vfs.listFiles('', true), []);
  await vfs.writeFile('a/b', 'x');
  await assert.rejects(vfs.writeFile('a', 'x'));
  assert.deepEqual(readdirSync(directory).sort(), ['a', 'file', 'link']);
});
