#!/usr/bin/env node
// Starts the program `tgp` of this platform's package with the same arguments, streams, signals and exit code.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

/** Ends before the program has run: 2 is also the program's code for a machine that lacks something. */
function fail(message) {
  process.stderr.write(`tgp: ${message}\n`);
  process.exit(2);
}

const name = `@tgp/${process.platform}-${process.arch}`;
const manifest = require('../package.json');

let program;
try {
  program = require.resolve(`${name}/bin/tgp`);
} catch {
  if (manifest.optionalDependencies[name] === undefined) {
    const known = Object.keys(manifest.optionalDependencies).map((known) => known.slice('@tgp/'.length));
    fail(`there is no package for ${process.platform}-${process.arch}: tgp runs on ${known.join(' and ')}`);
  }
  fail(
    `the package ${name} is missing. Install it with \`npm install ${name}@${manifest.version}\`; ` +
      'an installation with --omit=optional or --no-optional leaves it out.',
  );
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });

// A terminal sends these to the program as well; a second one would mean "stop at once".
const hasTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
const handlers = new Map();
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGTERM', 'SIGUSR1', 'SIGUSR2']) {
  const isFromTerminal = hasTerminal && (signal === 'SIGINT' || signal === 'SIGQUIT');
  const handler = () => isFromTerminal || child.kill(signal);
  handlers.set(signal, handler);
  process.on(signal, handler);
}

child.on('error', (error) => fail(`cannot start ${program}: ${error.message}`));
child.on('exit', (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // Ends by the same signal, so that the caller sees what happened.
  for (const [name, handler] of handlers) {
    process.off(name, handler);
  }
  process.kill(process.pid, signal);
  // Node itself ignores some of them.
  setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100);
});
