// Measures calls through the client: `npm run bench` in sdk/node, after `npm run build`. TGP_BIN names the program.
//
//   1,000 concurrent `exec_tool` calls: how long all of them take, and how long the event loop stands still at most
//   10,000 runs: memory of this process and of the kernel, which should not grow
//   single calls: their time as the application sees it, against the kernel's own

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

import { TGP, VERSION } from '@tgp/core';

const CONCURRENT = 1_000;
const RUNS = 10_000;
const SINGLE = 300;
/** Calls of the memory test that are under way at a time. */
const AT_A_TIME = 32;
/** The longest that the event loop of the application may stand still. */
const STALL_GOAL_MS = 50;

const TOOL = 'tools/math/double.ts';
const SOURCE = '/** Twice a number. */\nexport default (args: { n: number }): number => args.n * 2;\n';

/**
 * The longest time between two turns of the event loop while `work` runs, and the most processor time of one turn: on a busy
 * machine a turn also waits for other processes.
 */
async function stall(work) {
  const longest = { wall: 0, cpu: 0 };
  let wall = performance.now();
  let cpu = cpuMs();
  let isOver = false;
  const turn = () => {
    const [nowWall, nowCpu] = [performance.now(), cpuMs()];
    longest.wall = Math.max(longest.wall, nowWall - wall);
    longest.cpu = Math.max(longest.cpu, nowCpu - cpu);
    [wall, cpu] = [nowWall, nowCpu];
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work();
  } finally {
    isOver = true;
  }
  turn();
  return longest;
}

function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** The resident memory of a process in MiB. */
function residentMib(pid) {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}

/** The kernel, without its workers. */
function kernelPid() {
  const threads = readdirSync(`/proc/${process.pid}/task`);
  const children = threads.flatMap((thread) => readFileSync(`/proc/${process.pid}/task/${thread}/children`, 'utf8').split(' '));
  return children.filter(Boolean).find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--stdio'));
}

/** Runs `count` times, some of them at a time. */
async function runMany(kernel, count) {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const n = next++;
      const result = await kernel.exec(TOOL, { n });
      if (result !== n * 2) throw new Error(`${n} gave ${result}`);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
}

function memory() {
  globalThis.gc?.();
  return { node: residentMib(process.pid), heap: process.memoryUsage().heapUsed / 2 ** 20, kernel: residentMib(kernelPid()) };
}

const middle = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];

async function measure(kernel) {
  const rows = [];
  await kernel.call('write_file', { path: TOOL, content: SOURCE });
  await runMany(kernel, 200);

  const begin = performance.now();
  const longest = await stall(() => Promise.all(Array.from({ length: CONCURRENT }, (_, n) => kernel.exec(TOOL, { n }))));
  const seconds = (performance.now() - begin) / 1_000;
  rows.push([`${CONCURRENT} concurrent calls`, `${seconds.toFixed(2)} s, ${(CONCURRENT / seconds).toFixed(0)} calls/s`]);
  rows.push(['longest stall of the event loop', `${longest.wall.toFixed(1)} ms, of processor time ${longest.cpu.toFixed(1)} ms (goal ${STALL_GOAL_MS} ms)`]);

  for (const [done, runs] of [[0, 0], [RUNS / 10, RUNS / 10], [RUNS / 2, (RUNS / 10) * 4], [RUNS, RUNS / 2]]) {
    await runMany(kernel, runs);
    const { node, heap, kernel: resident } = memory();
    rows.push([`memory after ${done} runs`, `Node ${node.toFixed(0)} MiB (heap ${heap.toFixed(1)} MiB), kernel ${resident.toFixed(0)} MiB`]);
  }

  const times = [];
  for (let n = 0; n < SINGLE; n++) {
    const start = performance.now();
    await kernel.exec(TOOL, { n });
    times.push(performance.now() - start);
  }
  return { rows, times };
}

const base = mkdtempSync(join(tmpdir(), 'tgp-bench-'));
try {
  const directory = join(base, 'project');
  const configFile = join(directory, 'tgp.config.ts');
  mkdirSync(directory);
  const env = { ...process.env, TGP_HOME: join(base, 'home') };
  const tgp = (...args) => execFileSync(process.env.TGP_BIN ?? 'tgp', args, { cwd: directory, env, encoding: 'utf8', maxBuffer: 2 ** 28 });
  tgp('init', '--json');
  writeFileSync(configFile, "export default { tdd: { mode: 'explore' } };\n");
  tgp('trust', '--yes');
  const kernel = new TGP({ configFile, env });
  const { rows, times } = await measure(kernel);
  const { version } = kernel.info.kernel;
  await kernel.shutdown();
  // The last calls are those that were made one at a time.
  const { entries } = JSON.parse(tgp('--json', 'audit', 'tail', '-n', `${SINGLE}`)).data;
  const own = middle(entries.map(({ entry }) => entry.outcome.durationUs / 1_000));
  const seen = middle(times);
  rows.push([`one call at a time, median of ${SINGLE}`, `${seen.toFixed(2)} ms, of it ${own.toFixed(2)} ms in the kernel: overhead ${(seen - own).toFixed(2)} ms`]);
  console.log(`npm run bench: @tgp/core ${VERSION}, tgp ${version}, Node ${process.versions.node}`);
  console.log(`${cpus().length} × ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB, load ${loadavg()[0].toFixed(1)}`);
  console.log(['| what | measured |', '| --- | --- |', ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n'));
} finally {
  rmSync(base, { recursive: true, force: true });
}
